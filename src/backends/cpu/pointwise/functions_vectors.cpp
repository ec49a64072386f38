#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/functions_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/base/extremes.h"
#include "backends/cpu/base/math.h"
#include "backends/cpu/elementwise/map.h"
#include "backends/cpu/elementwise/plan.h"
#include "backends/cpu/pointwise/kernels.h"
#include "backends/cpu/pointwise/parameters.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Abs {
  static HWY_INLINE F32Vec of(F32Vec x) { return hn::Abs(x); }
};
struct Neg {
  static HWY_INLINE F32Vec of(F32Vec x) { return hn::Neg(x); }
};
struct Sign {
  static HWY_INLINE F32Vec of(F32Vec x) {
    const F32Vec below = hn::IfThenElse(hn::Lt(x, constant(0)), constant(-1), x);
    return hn::IfThenElse(hn::Gt(x, constant(0)), constant(1), below);
  }
};
struct Floor {
  static HWY_INLINE F32Vec of(F32Vec x) { return hn::Floor(x); }
};
struct Ceil {
  static HWY_INLINE F32Vec of(F32Vec x) { return hn::Ceil(x); }
};
struct Round {
  static HWY_INLINE F32Vec of(F32Vec x) { return hn::Round(x); }
};
struct Reciprocal {
  static HWY_INLINE F32Vec of(F32Vec x) { return hn::Div(constant(1), x); }
};
struct Erf {
  static HWY_INLINE F32Vec of(F32Vec x) { return verf(x); }
};
struct Softplus {
  static HWY_INLINE F32Vec of(F32Vec x) { return vsoftplus(x); }
};
struct HardSwish {
  static HWY_INLINE F32Vec of(F32Vec x) {
    return hn::Mul(x, bounded(hn::MulAdd(x, constant(1.0f / 6), constant(0.5f)), 0, 1));
  }
};

// With parameters.

struct Clip {
  explicit Clip(FunctionParameters p) : low(p[0]), high(p[1]) {}
  HWY_INLINE F32Vec of(F32Vec x) const { return minimum(maximum(x, constant(low)), constant(high)); }
  float low, high;
};
struct LeakyRelu {
  explicit LeakyRelu(FunctionParameters p) : slope(p[0]) {}
  HWY_INLINE F32Vec of(F32Vec x) const {
    return hn::IfThenElse(hn::Lt(x, constant(0)), hn::Mul(x, constant(slope)), x);
  }
  float slope;
};
struct Elu {
  explicit Elu(FunctionParameters p) : alpha(p[0]) {}
  HWY_INLINE F32Vec of(F32Vec x) const {
    return hn::IfThenElse(hn::Lt(x, constant(0)), hn::Mul(constant(alpha), vexpm1(hn::Min(x, constant(0)))), x);
  }
  float alpha;
};
struct HardSigmoid {
  explicit HardSigmoid(FunctionParameters p) : alpha(p[0]), beta(p[1]) {}
  HWY_INLINE F32Vec of(F32Vec x) const { return bounded(hn::MulAdd(x, constant(alpha), constant(beta)), 0, 1); }
  float alpha, beta;
};

/// By the C library, lane by lane: within 2 ulp, of any argument.
template <float (*function)(float)>
struct EachLane {
  static HWY_INLINE F32Vec of(F32Vec x) {
    HWY_ALIGN float lanes[hn::MaxLanes(F32())];
    hn::Store(x, F32(), lanes);
    for (std::size_t i = 0; i < f32_lanes(); ++i) lanes[i] = function(lanes[i]);
    return hn::Load(F32(), lanes);
  }
};

/// Vectors with an element that is far out, or none, go the long way.
template <int quarter, float (*function)(float)>
struct Wave {
  static HWY_INLINE F32Vec of(F32Vec x) {
    if (hn::AllTrue(F32(), hn::Le(hn::Abs(x), constant(8192)))) return vsin(x, quarter);
    return EachLane<function>::of(x);
  }
};

}  // namespace

RunBlock find_function(OpId op) {
  switch (op) {
    case OpId::abs:
      return map_block<Abs>;
    case OpId::neg:
      return map_block<Neg>;
    case OpId::sign:
      return map_block<Sign>;
    case OpId::floor:
      return map_block<Floor>;
    case OpId::ceil:
      return map_block<Ceil>;
    case OpId::round:
      return map_block<Round>;
    case OpId::reciprocal:
      return map_block<Reciprocal>;
    case OpId::erf:
      return map_block<Erf>;
    case OpId::softplus:
      return map_block<Softplus>;
    case OpId::hard_swish:
      return map_block<HardSwish>;
    case OpId::clip:
      return map_block<Clip>;
    case OpId::leaky_relu:
      return map_block<LeakyRelu>;
    case OpId::elu:
      return map_block<Elu>;
    case OpId::hard_sigmoid:
      return map_block<HardSigmoid>;
    case OpId::sin:
      return map_block<Wave<0, ::sinf>>;
    case OpId::cos:
      return map_block<Wave<1, ::cosf>>;
    case OpId::tan:
      return map_block<EachLane<::tanf>>;
    case OpId::asin:
      return map_block<EachLane<::asinf>>;
    case OpId::acos:
      return map_block<EachLane<::acosf>>;
    case OpId::atan:
      return map_block<EachLane<::atanf>>;
    case OpId::sinh:
      return map_block<EachLane<::sinhf>>;
    case OpId::cosh:
      return map_block<EachLane<::coshf>>;
    case OpId::asinh:
      return map_block<EachLane<::asinhf>>;
    case OpId::acosh:
      return map_block<EachLane<::acoshf>>;
    default:
      return map_block<EachLane<::atanhf>>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_function);

std::unique_ptr<const Plan> prepare_functions_simd(const Problem& problem, const PrepareContext&) {
  const Parameters given = parameters_of(problem);
  return make_block_plan(problem, HWY_DYNAMIC_DISPATCH(find_function)(problem.op), heavy_grain,
                         {static_cast<float>(given.first), static_cast<float>(given.second)});
}

std::unique_ptr<const Plan> prepare_functions_library(const Problem& problem, const PrepareContext&) {
  constexpr std::int64_t grain = heavy_grain / 8;  // ten times as slow as vectors
  return make_block_plan(problem, HWY_DYNAMIC_DISPATCH(find_function)(problem.op), grain);
}

}  // namespace xpuruntime::cpu
#endif
