#include "backends/cpu/decoder/plan.h"

namespace xpuruntime::cpu {
namespace {

/// Runs a plan of two inputs on the halves of one.
class HalvesPlan final : public Plan {
 public:
  HalvesPlan(const TensorSpec& half, std::size_t between, std::unique_ptr<const Plan> plan)
      : half_(half), between_(between), plan_(std::move(plan)) {}

  Status run(const RunArguments& arguments) const override {
    const Tensor& whole = *arguments.inputs[0];
    const auto from = [&](std::size_t offset) {
      return Tensor::on(whole.data(), half_, {}, whole.byte_offset() + offset);
    };
    const Tensor gate = from(0), factor = from(between_);
    const Tensor* const inputs[] = {&gate, &factor};
    return plan_->run({inputs, arguments.outputs, arguments.workspace, arguments.stream});
  }

 private:
  TensorSpec half_;
  std::size_t between_;  // bytes from one to the other
  std::unique_ptr<const Plan> plan_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_on_halves(const Problem& problem,
                                              std::unique_ptr<const Plan> (*make)(const Problem& two)) {
  if (problem.inputs.size() == 2) return make(problem);
  const TensorSpec& whole = problem.inputs[0];
  const TensorSpec half = make_spec(whole.dtype, problem.outputs[0].shape, whole.strides, 1);
  const auto between = static_cast<std::size_t>(half.shape.back() * whole.strides.back()) * size_of(whole.dtype);
  Problem halves = problem;
  halves.inputs = {half, half};
  return std::make_unique<HalvesPlan>(half, between, make(halves));
}

}  // namespace xpuruntime::cpu
