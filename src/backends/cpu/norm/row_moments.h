// Moments of contiguous elements. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_NORM_ROW_MOMENTS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_NORM_ROW_MOMENTS_H_
#undef XRT_CPU_NORM_ROW_MOMENTS_H_
#else
#define XRT_CPU_NORM_ROW_MOMENTS_H_
#endif

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/moments.h"
#include "backends/cpu/reduce/accumulate.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// The sum of squared distances from `mean`.
template <class T>
HWY_INLINE float squares_of(const T* x, std::size_t n, float mean) {
  const F32Vec m = hn::Set(F32(), mean);
  return fold_row<SumFold>(x, n, [m](F32Vec v) HWY_ATTR {
    const F32Vec d = hn::Sub(v, m);
    return hn::Mul(d, d);
  });
}

/// In two passes: the elements should fit the cache.
template <class T>
HWY_INLINE Moments moments_of(const T* x, std::size_t n) {
  const float mean = fold_row<SumFold>(x, n) / static_cast<float>(n);
  return {static_cast<double>(n), static_cast<double>(mean), static_cast<double>(squares_of(x, n, mean))};
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
