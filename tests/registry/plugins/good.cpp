// A plugin as a stranger would write it: one more relu for the CPU.

#include <algorithm>

#include "xpuruntime/registry/backend.h"

namespace xpuruntime {
namespace {

class ReluPlan final : public Plan {
 public:
  Status run(const RunArguments& arguments) const override {
    const auto* in = arguments.inputs[0]->as<const float>();
    auto* out = arguments.outputs[0]->as<float>();
    const std::int64_t count = element_count(arguments.inputs[0]->spec());
    for (std::int64_t i = 0; i < count; ++i) out[i] = std::max(in[i], 0.0f);
    return {};
  }
  std::string token() const override { return "loop=plain"; }
};

Verdict supports_relu(const Problem& problem, const DeviceProfile&) {
  const TensorSpec& in = problem.inputs[0];
  if (in.dtype != DataType::float32) return Verdict::no("only f32 is written");
  return in.contiguous && problem.outputs[0].contiguous ? Verdict::yes() : Verdict::no("it needs contiguous tensors");
}

std::unique_ptr<const Plan> prepare_relu(const Problem&, const PrepareContext&) { return std::make_unique<ReluPlan>(); }

constexpr KernelSpec table[] = {{OpId::relu, "plugin_relu", supports_relu, prepare_relu}};

class GoodBackend final : public Backend {
 public:
  std::string_view name() const override { return "good"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return nullptr; }
  std::span<const KernelSpec> kernels() const override { return table; }
  std::string_view version() const override { return "1.2"; }
};

}  // namespace

XRT_EXPORT_BACKEND(GoodBackend)

}  // namespace xpuruntime
