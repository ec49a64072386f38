#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/decoder/silu_mul_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/math.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/decoder/plan.h"
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

HWY_EXPORT(silu_mul_block);

std::unique_ptr<const Plan> prepare_silu_mul_simd(const Problem& problem, const PrepareContext&) {
  return prepare_on_halves(problem, [](const Problem& two) {
    const RunBlock run_block = [](const Block& block) { HWY_DYNAMIC_DISPATCH(silu_mul_block)(block); };
    return make_block_plan(two, run_block, heavy_grain);
  });
}

}  // namespace xpuruntime::cpu
#endif
