#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/unary_backward_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/math.h"
#include "backends/cpu/elementwise/combine.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/plan.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// What reaches the input x of the gradient g of the output.

// At 0 it is 0. NaN is not below 0: the gradient passes.
struct Relu {
  static HWY_INLINE F32Vec of(F32Vec x, F32Vec g) { return hn::IfThenZeroElse(hn::Le(x, constant(0)), g); }
};

struct Gelu {
  static HWY_INLINE F32Vec of(F32Vec x, F32Vec g) {
    const F32Vec density = hn::Mul(constant(0.3989422804f), vexp(hn::Mul(constant(-0.5f), hn::Mul(x, x))));
    return hn::Mul(g, hn::MulAdd(x, density, vphi(x)));
  }
};

struct GeluTanh {
  static HWY_INLINE F32Vec of(F32Vec x, F32Vec g) {
    // Past 30 the sigmoid is 0 or 1, and its slope is nothing; the square would overflow.
    const F32Vec near = bounded(x, -30.0f, 30.0f), square = hn::Mul(near, near);
    const F32Vec u = hn::Mul(near, hn::MulAdd(square, constant(0.071354816f), constant(1.5957691f)));
    const F32Vec inner = hn::MulAdd(square, constant(3 * 0.071354816f), constant(1.5957691f));
    const F32Vec bend = hn::Mul(hn::Mul(near, inner), vsigmoid(hn::Neg(u)));
    // At infinity the formula is NaN, as in PyTorch: an overflow is not to be hidden.
    return hn::Mul(g, hn::MulAdd(vsigmoid(u), hn::Add(constant(1), bend), hn::Sub(x, x)));
  }
};

// The other side of the sigmoid is computed for itself: 1 - s would have lost it where s is near 1.
struct Silu {
  static HWY_INLINE F32Vec of(F32Vec x, F32Vec g) {
    return hn::Mul(g, hn::Mul(vsigmoid(x), hn::MulAdd(x, vsigmoid(hn::Neg(x)), constant(1))));
  }
};

struct Sigmoid {
  static HWY_INLINE F32Vec of(F32Vec x, F32Vec g) { return hn::Mul(g, hn::Mul(vsigmoid(x), vsigmoid(hn::Neg(x)))); }
};

// 1 - tanh(x)^2 is 4 s(2x) s(-2x), which keeps its digits in the tails.
struct Tanh {
  static HWY_INLINE F32Vec of(F32Vec x, F32Vec g) {
    const F32Vec twice = hn::Add(x, x);
    return hn::Mul(g, hn::Mul(constant(4), hn::Mul(vsigmoid(twice), vsigmoid(hn::Neg(twice)))));
  }
};

}  // namespace

RunBlock find_slope(OpId op, bool by_tanh) {
  switch (op) {
    case OpId::gelu:
      return by_tanh ? combine_block<GeluTanh> : combine_block<Gelu>;
    case OpId::silu:
      return combine_block<Silu>;
    case OpId::sigmoid:
      return combine_block<Sigmoid>;
    case OpId::tanh:
      return combine_block<Tanh>;
    default:
      return combine_block<Relu>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_slope);

std::unique_ptr<const Plan> prepare_unary_backward_simd(const Problem& problem) {
  const bool by_tanh = problem.op == OpId::gelu && problem.attributes.choice("approximate") == "tanh";
  return make_block_plan(problem, HWY_DYNAMIC_DISPATCH(find_slope)(problem.op, by_tanh),
                         problem.op == OpId::relu ? light_grain : heavy_grain);
}

}  // namespace xpuruntime::cpu
#endif
