// The transforms of Winograd's minimal filtering with 3 taps along one dim, for 2 and 4 outputs. Included once for each
// target, as simd.h is.
#if defined(XRT_CPU_CONV_WINOGRAD_TRANSFORMS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_CONV_WINOGRAD_TRANSFORMS_H_
#undef XRT_CPU_CONV_WINOGRAD_TRANSFORMS_H_
#else
#define XRT_CPU_CONV_WINOGRAD_TRANSFORMS_H_
#endif

#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE F32Vec times(float factor, F32Vec value) { return hn::Mul(hn::Set(F32(), factor), value); }
HWY_INLINE F32Vec times_plus(float factor, F32Vec value, F32Vec more) {
  return hn::MulAdd(hn::Set(F32(), factor), value, more);
}

// Inputs: four values for two outputs, six for four.
HWY_INLINE void transform_inputs(const F32Vec (&in)[4], F32Vec (&out)[4]) {
  out[0] = hn::Sub(in[0], in[2]);
  out[1] = hn::Add(in[1], in[2]);
  out[2] = hn::Sub(in[2], in[1]);
  out[3] = hn::Sub(in[1], in[3]);
}
HWY_INLINE void transform_inputs(const F32Vec (&in)[6], F32Vec (&out)[6]) {
  const F32Vec even = times_plus(-4, in[2], in[4]), odd = times_plus(-4, in[1], in[3]);
  const F32Vec near = hn::Sub(in[4], in[2]), far = times(2, hn::Sub(in[3], in[1]));
  out[0] = times_plus(4, in[0], times_plus(-5, in[2], in[4]));
  out[1] = hn::Add(even, odd);
  out[2] = hn::Sub(even, odd);
  out[3] = hn::Add(near, far);
  out[4] = hn::Sub(near, far);
  out[5] = times_plus(4, in[1], times_plus(-5, in[3], in[5]));
}

// Three weights.
HWY_INLINE void transform_weights(const F32Vec (&in)[3], F32Vec (&out)[4]) {
  const F32Vec ends = hn::Add(in[0], in[2]);
  out[0] = in[0];
  out[1] = times(0.5f, hn::Add(ends, in[1]));
  out[2] = times(0.5f, hn::Sub(ends, in[1]));
  out[3] = in[2];
}
HWY_INLINE void transform_weights(const F32Vec (&in)[3], F32Vec (&out)[6]) {
  const F32Vec ends = hn::Add(in[0], in[2]);
  const F32Vec far = times_plus(4, in[2], in[0]), middle = times(2, in[1]);
  out[0] = times(0.25f, in[0]);
  out[1] = times(-1.0f / 6, hn::Add(ends, in[1]));
  out[2] = times(-1.0f / 6, hn::Sub(ends, in[1]));
  out[3] = times(1.0f / 24, hn::Add(far, middle));
  out[4] = times(1.0f / 24, hn::Sub(far, middle));
  out[5] = in[2];
}

// Back to outputs.
HWY_INLINE void transform_outputs(const F32Vec (&in)[4], F32Vec (&out)[2]) {
  out[0] = hn::Add(in[0], hn::Add(in[1], in[2]));
  out[1] = hn::Sub(hn::Sub(in[1], in[2]), in[3]);
}
HWY_INLINE void transform_outputs(const F32Vec (&in)[6], F32Vec (&out)[4]) {
  const F32Vec near = hn::Add(in[1], in[2]), near_odd = hn::Sub(in[1], in[2]);
  const F32Vec far = hn::Add(in[3], in[4]), far_odd = hn::Sub(in[3], in[4]);
  out[0] = hn::Add(in[0], hn::Add(near, far));
  out[1] = times_plus(2, far_odd, near_odd);
  out[2] = times_plus(4, far, near);
  out[3] = hn::Add(in[5], times_plus(8, far_odd, near_odd));
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
