// How pools combine values, shared by the files with their loops. Included once for each target that Highway compiles
// for, so it has Highway's toggling guard.
#if defined(XRT_CPU_POOL_COMBINE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_POOL_COMBINE_H_
#undef XRT_CPU_POOL_COMBINE_H_
#else
#define XRT_CPU_POOL_COMBINE_H_
#endif

#include <cstdint>
#include <limits>

#include "backends/cpu/base/extremes.h"
#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

struct Maximum {
  static constexpr float identity = -std::numeric_limits<float>::infinity();
  static HWY_INLINE F32Vec combine(F32Vec most, F32Vec value) { return maximum(most, value); }
  static HWY_INLINE F32Vec over_lanes(F32Vec value) { return maximum_of_lanes(value); }
};

struct Sum {
  static constexpr float identity = 0;
  static HWY_INLINE F32Vec combine(F32Vec sum, F32Vec value) { return hn::Add(sum, value); }
  static HWY_INLINE F32Vec over_lanes(F32Vec value) { return hn::SumOfLanes(F32(), value); }
};

/// value / count with `inverse` near 1 / count: a step of Newton's makes it as good as the division, which takes as
/// long as all the rest of a row.
HWY_INLINE F32Vec divided(F32Vec value, F32Vec count, F32Vec inverse) {
  const F32Vec near = hn::Mul(value, inverse);
  const F32Vec error = hn::NegMulAdd(near, count, value);
  return hn::IfThenElse(hn::IsNaN(error), near, hn::MulAdd(error, inverse, near));  // infinity less infinity
}

template <class T>
HWY_INLINE void put_some(F32Vec value, T* to, std::int64_t n) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  if (n >= lanes) return store(value, to);
  store_first(value, to, static_cast<std::size_t>(n));
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif
