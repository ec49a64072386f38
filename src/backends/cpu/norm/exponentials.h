// What softmax and cross_entropy have in common. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_NORM_EXPONENTIALS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_NORM_EXPONENTIALS_H_
#undef XRT_CPU_NORM_EXPONENTIALS_H_
#else
#define XRT_CPU_NORM_EXPONENTIALS_H_
#endif

#include <limits>

#include "backends/cpu/base/math.h"
#include "backends/cpu/base/simd.h"
#include "backends/cpu/reduce/accumulate.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// The highest of n elements. NaN may be passed over: the sum of exponentials will meet it.
template <class T>
HWY_INLINE float highest_of(const T* x, std::size_t n) {
  const std::size_t lanes = f32_lanes();
  F32Vec a = hn::Neg(hn::Inf(F32())), b = a, c = a, d = a;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Max(a, load(x + i));
    b = hn::Max(b, load(x + i + lanes));
    c = hn::Max(c, load(x + i + 2 * lanes));
    d = hn::Max(d, load(x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Max(a, load(x + i));
  if (i < n) {
    b = hn::IfThenElse(hn::FirstN(F32(), n - i), hn::Max(b, load_first(x + i, n - i)), b);
  }
  return hn::GetLane(hn::MaxOfLanes(F32(), hn::Max(hn::Max(a, b), hn::Max(c, d))));
}

/// What is taken off before the exp: the highest, but 0 where all are -inf, which would give NaN.
HWY_INLINE float shift_of(float highest) { return highest == -std::numeric_limits<float>::infinity() ? 0.0f : highest; }
HWY_INLINE F32Vec shift_of(F32Vec highest) {
  return hn::IfThenZeroElse(hn::Eq(highest, hn::Neg(hn::Inf(F32()))), highest);
}

/// The sum of exp(x - shift); each vector of exponentials also goes to keep(offset, vector, how many).
template <class T, class Keep>
HWY_INLINE float sum_of_exp(const T* x, std::size_t n, float shift, const Keep& keep) {
  const std::size_t lanes = f32_lanes();
  const F32Vec s = hn::Set(F32(), shift);
  LongSum a, b;
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const F32Vec e = vexp(hn::Sub(load(x + i), s));
    const F32Vec f = vexp(hn::Sub(load(x + i + lanes), s));
    keep(i, e, lanes);
    keep(i + lanes, f, lanes);
    a.add(e);
    b.add(f);
  }
  for (; i < n; i += lanes) {
    const std::size_t left = n - i < lanes ? n - i : lanes;
    const F32Vec v = left == lanes ? load(x + i) : load_first(x + i, left);
    const F32Vec e = vexp(hn::Sub(v, s));
    keep(i, e, left);
    a.add(hn::IfThenElseZero(hn::FirstN(F32(), left), e));
  }
  return SumFold::lanes(hn::Add(a.all(), b.all()));
}

template <class T>
HWY_INLINE void store_some(F32Vec value, T* to, std::size_t n) {
  if (n == f32_lanes()) return store(value, to);
  store_first(value, to, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
