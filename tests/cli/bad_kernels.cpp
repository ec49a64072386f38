// A plugin for the tests of `xrt run --force`, `xrt bench` and `--plugin`: kernels that go wrong in each way a kernel
// can.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "xpuruntime/registry/backend.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime {
namespace {

class FunctionPlan final : public Plan {
 public:
  using Function = Status (*)(const RunArguments&);
  explicit FunctionPlan(Function function) : function_(function) {}
  Status run(const RunArguments& arguments) const override { return function_(arguments); }

 private:
  Function function_;
};

template <class F>
Status each(const RunArguments& arguments, F function) {
  const auto* in = arguments.inputs[0]->as<const float>();
  auto* out = arguments.outputs[0]->as<float>();
  for (std::int64_t i = 0; i < element_count(arguments.outputs[0]->spec()); ++i) out[i] = function(in[i]);
  return {};
}

Verdict dense(const Problem& problem, const DeviceProfile&) { return is_contiguous(problem); }

template <FunctionPlan::Function function>
std::unique_ptr<const Plan> prepare(const Problem&, const PrepareContext&) {
  return std::make_unique<FunctionPlan>(function);
}

Status off_by_a_little(const RunArguments& arguments) {
  return each(arguments, [](float x) { return std::fmax(x, 0.0F) + 1e-4F; });
}
Status write_nothing(const RunArguments&) { return {}; }
Status refuse_to_start(const RunArguments&) { return Status(ErrorCode::device_error, "it always fails"); }
Status exponential(const RunArguments& arguments) {
  return each(arguments, [](float x) { return std::exp(x); });
}
Status write_to_inputs(const RunArguments& arguments) {
  const auto count = static_cast<std::size_t>(element_count(arguments.outputs[0]->spec()));
  std::fill_n(const_cast<float*>(arguments.inputs[0]->as<const float>()), count, 0.0F);
  std::fill_n(arguments.outputs[0]->as<float>(), count, 0.0F);
  return {};
}
Status crash(const RunArguments&) {
  std::raise(SIGSEGV);
  return {};
}
Status end_the_process(const RunArguments&) { std::exit(3); }
Status give_up(const RunArguments&) { throw std::runtime_error("it gave up"); }

constexpr KernelSpec table[] = {
    {OpId::relu, "wrong_relu", "a bad kernel", DataType::float32, prepare<off_by_a_little>, dense},
    {OpId::relu, "lazy_relu", "a bad kernel", DataType::float32, prepare<write_nothing>, dense},
    {OpId::relu, "failing_relu", "a bad kernel", DataType::float32, prepare<refuse_to_start>, dense},
    {OpId::silu, "scribbling_silu", "a bad kernel", DataType::float32, prepare<write_to_inputs>, dense},
    with_backward({OpId::exp, "lone_exp", "a bad kernel", DataType::float32, prepare<exponential>, dense}),
    {OpId::tanh, "crashing_tanh", "a bad kernel", DataType::float32, prepare<crash>, dense},
    {OpId::tanh, "exiting_tanh", "a bad kernel", DataType::float32, prepare<end_the_process>, dense},
    {OpId::tanh, "throwing_tanh", "a bad kernel", DataType::float32, prepare<give_up>, dense},
};

class BadKernels final : public Backend {
 public:
  std::string_view name() const override { return "bad_kernels"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return nullptr; }
  std::span<const KernelSpec> kernels() const override { return table; }
};

}  // namespace
}  // namespace xpuruntime

XRT_EXPORT_BACKEND(xpuruntime::BadKernels)
