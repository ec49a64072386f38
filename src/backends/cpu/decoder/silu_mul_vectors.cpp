#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/decoder/silu_mul_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/math.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/elementwise/combine.h"
#include "backends/cpu/elementwise/plan.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// silu_mul of negative gates has exp(gate) as the square of exp(gate / 2), one root for the gate and one for the
/// factor: silu alone may be too small for a float where its product with a large factor is not.
struct SiluMul {
  static HWY_INLINE F32Vec of(F32Vec gate, F32Vec factor) {
    const F32Vec root = vexp(hn::Mul(hn::Abs(gate), constant(-0.5f)));
    const F32Vec part = hn::IfThenElse(hn::Lt(gate, constant(0)), root, constant(1));
    const F32Vec whole = reciprocal(hn::MulAdd(root, root, constant(1)));
    return hn::Mul(hn::Mul(hn::Mul(gate, whole), part), hn::Mul(factor, part));
  }
};

}  // namespace

void silu_mul_block(const Block& block) { combine_block<SiluMul>(block); }

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
namespace {

HWY_EXPORT(silu_mul_block);

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

/// A plan of two inputs, made by `make`, that runs on the halves of one where the problem has one.
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

/// The reference, in double: gate and factor are the two inputs.
Status run_silu_mul(const Problem& problem, const RunArguments& arguments) {
  combine_reals(problem, arguments, [](double x, double y) { return x / (1 + std::exp(-x)) * y; });
  return {};
}

}  // namespace

std::unique_ptr<const Plan> prepare_silu_mul_simd(const Problem& problem, const PrepareContext&) {
  return prepare_on_halves(problem, [](const Problem& two) {
    const RunBlock run_block = [](const Block& block) { HWY_DYNAMIC_DISPATCH(silu_mul_block)(block); };
    return make_block_plan(two, run_block, heavy_grain);
  });
}

std::unique_ptr<const Plan> prepare_silu_mul_reference(const Problem& problem, const PrepareContext&) {
  return prepare_on_halves(problem, [](const Problem& two) -> std::unique_ptr<const Plan> {
    return std::make_unique<ProblemPlan>(two, run_silu_mul);
  });
}

}  // namespace xpuruntime::cpu
#endif
