// The maximum and the minimum as IEEE 754 defines them: NaN wins over every number, and -0 is below +0. Processors do
// otherwise, each in its own way, and Highway's Max and Min do what the processor does: use those only where the result
// is NaN anyhow if an input is. As no order of the operands changes the result, neither threads, the width of vectors
// nor the processor does. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_EXTREMES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_EXTREMES_H_
#undef XRT_CPU_EXTREMES_H_
#else
#define XRT_CPU_EXTREMES_H_
#endif

#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64

// These instructions are the definition; Highway takes those that leave out NaN.
HWY_INLINE F32Vec maximum(F32Vec a, F32Vec b) { return F32Vec{vmaxq_f32(a.raw, b.raw)}; }
HWY_INLINE F32Vec minimum(F32Vec a, F32Vec b) { return F32Vec{vminq_f32(a.raw, b.raw)}; }

#elif HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// maxps and minps give their second operand where one is NaN or both are zeros: asked both ways, the answers differ
// there and nowhere else. Joined bits of a NaN and a number are a NaN, those of two zeros are -0 if one is.
HWY_INLINE F32Vec minimum(F32Vec a, F32Vec b) { return hn::Or(hn::Min(a, b), hn::Min(b, a)); }
HWY_INLINE F32Vec maximum(F32Vec a, F32Vec b) {
  const F32Vec ab = hn::Max(a, b), difference = hn::Xor(ab, hn::Max(b, a));
  // Takes nothing off where they agree; -0 less -0 is +0.
  return hn::Sub(hn::Or(ab, difference), difference);
}

#else

HWY_INLINE F32Vec first_nan_or(F32Vec a, F32Vec b, F32Vec extreme) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, extreme));
}
HWY_INLINE F32Vec maximum(F32Vec a, F32Vec b) {
  const F32Vec greater = hn::IfThenElse(hn::Lt(a, b), b, a);
  return first_nan_or(a, b, hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), greater));
}
HWY_INLINE F32Vec minimum(F32Vec a, F32Vec b) {
  const F32Vec less = hn::IfThenElse(hn::Lt(b, a), b, a);
  return first_nan_or(a, b, hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), less));
}

#endif

/// All lanes combined, in every lane. A template, so that what a target has no lanes for is not compiled.
template <class D, class Combine>
HWY_INLINE F32Vec across_lanes(D d, F32Vec v, const Combine& combine) {
  v = combine(v, hn::Reverse(d, v));
  if constexpr (hn::MaxLanes(D()) >= 16) v = combine(v, hn::Reverse8(d, v));
  if constexpr (hn::MaxLanes(D()) >= 8) v = combine(v, hn::Reverse4(d, v));
  if constexpr (hn::MaxLanes(D()) >= 4) v = combine(v, hn::Reverse2(d, v));
  return v;
}
HWY_INLINE F32Vec maximum_of_lanes(F32Vec v) {
  return across_lanes(F32(), v, [](F32Vec a, F32Vec b) HWY_ATTR { return maximum(a, b); });
}
HWY_INLINE F32Vec minimum_of_lanes(F32Vec v) {
  return across_lanes(F32(), v, [](F32Vec a, F32Vec b) HWY_ATTR { return minimum(a, b); });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
