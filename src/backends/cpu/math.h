// Functions of vectors of f32 over their whole range, with denormals, infinities and NaN as from the C library. In ulp:
// exp and log 1, tanh and erf 2, sigmoid and silu 3, gelu 3.5 (below -1 less: 1e-5 of the value at -5, 1e-2 at -9). The
// polynomials are minimax fits of our own. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_MATH_H_
#undef XRT_CPU_MATH_H_
#else
#define XRT_CPU_MATH_H_
#endif

#include "backends/cpu/activation.h"
#include "backends/cpu/simd.h"

#undef XRT_CPU_X86_MIN_MAX
#define XRT_CPU_X86_MIN_MAX (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

using I32 = hn::RebindToSigned<F32>;
using I32Vec = hn::Vec<I32>;

HWY_INLINE F32Vec constant(float value) { return hn::Set(F32(), value); }

/// c0 + c1 x + c2 x^2 ...
HWY_INLINE F32Vec polynomial(F32Vec, float last) { return constant(last); }
template <class... More>
HWY_INLINE F32Vec polynomial(F32Vec x, float first, More... more) {
  return hn::MulAdd(polynomial(x, more...), x, constant(first));
}

/// x held in [low, high]; NaN stays.
HWY_INLINE F32Vec bounded(F32Vec x, float low, float high) {
#if XRT_CPU_X86_MIN_MAX
  // minps and maxps give their second operand where one is NaN.
  return hn::Min(constant(high), hn::Max(constant(low), x));
#else
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(constant(high), hn::Max(constant(low), x)));
#endif
}

// Adding it rounds a float below 2^22 to an integer, which then stands in the low bits of the sum.
inline constexpr float round_magic = 0x1.8p23f;

/// For |x| < 2^20: `n`, the integer nearest to x / log(2), plus round_magic; returns exp(x - n log(2)) - 1.
HWY_INLINE F32Vec expm1_reduced(F32Vec x, F32Vec& n_plus_magic) {
  n_plus_magic = hn::MulAdd(x, constant(0x1.715476p+0f), constant(round_magic));
  const F32Vec n = hn::Sub(n_plus_magic, constant(round_magic));
  // log(2) in two parts; the first has few bits, so that its product is exact without fused multiply-add too.
  F32Vec r = hn::NegMulAdd(n, constant(0x1.62e4p-1f), x);
  r = hn::NegMulAdd(n, constant(0x1.7f7d1cp-20f), r);
  const F32Vec q = polynomial(r, 0x1.fffffcp-2f, 0x1.55548ap-3f, 0x1.555916p-5f, 0x1.123fc6p-7f, 0x1.6a1a78p-10f);
  return hn::MulAdd(hn::Mul(r, r), q, r);
}

/// 2^n for n in [-126, 127].
HWY_INLINE F32Vec power_of_two(I32Vec n) {
  return hn::BitCast(F32(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(I32(), 127))));
}

HWY_INLINE I32Vec integer_of(F32Vec n_plus_magic) {
  return hn::Sub(hn::BitCast(I32(), n_plus_magic), hn::BitCast(I32(), constant(round_magic)));
}

/// x 2^n, rounded once where it is denormal.
HWY_INLINE F32Vec scaled(F32Vec x, F32Vec n_plus_magic) {
#if HWY_TARGET == HWY_AVX3
  return F32Vec{_mm512_scalef_ps(x.raw, hn::Sub(n_plus_magic, constant(round_magic)).raw)};
#else
  // In two steps: 2^n alone may be no float.
  const I32Vec n = integer_of(n_plus_magic);
  const I32Vec half = hn::ShiftRight<1>(n);
  return hn::Mul(hn::Mul(x, power_of_two(half)), power_of_two(hn::Sub(n, half)));
#endif
}

HWY_INLINE F32Vec vexp(F32Vec x) {
  F32Vec n;
  const F32Vec p = expm1_reduced(bounded(x, -104.0f, 89.0f), n);
  return scaled(hn::Add(constant(1), p), n);
}

/// e log(2) + log(1 + f) for f from sqrt(1/2) - 1 to 1/2.
HWY_INLINE F32Vec log_combined(F32Vec e, F32Vec f) {
  const F32Vec f2 = hn::Mul(f, f);
  const F32Vec q = polynomial(f, 0x1.555554p-2f, -0x1.00000ep-2f, 0x1.999b76p-3f, -0x1.555032p-3f, 0x1.243d64p-3f,
                              -0x1.ffdd74p-4f, 0x1.d259eep-4f, -0x1.b0f34cp-4f, 0x1.49c358p-4f, -0x1.043862p-5f);
  // The small terms first: e log(2) and f are the large ones.
  const F32Vec small = hn::MulAdd(e, constant(0x1.7f7d1cp-20f), hn::Mul(hn::Mul(f, f2), q));
  const F32Vec sum = hn::Add(hn::NegMulAdd(constant(0.5f), f2, small), f);
  return hn::MulAdd(e, constant(0x1.62e4p-1f), sum);
}

#if HWY_TARGET == HWY_AVX3

HWY_INLINE F32Vec vlog(F32Vec x) {
  // Mantissa from 3/4 to 3/2 and exponent of all floats, the special ones as log needs them.
  const F32Vec m{_mm512_getmant_ps(x.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan)};
  const F32Vec e = hn::Sub(F32Vec{_mm512_getexp_ps(x.raw)}, F32Vec{_mm512_getexp_ps(m.raw)});
  return log_combined(e, hn::Sub(m, constant(1)));
}

#else

HWY_INLINE F32Vec vlog(F32Vec x) {
  const auto tiny = hn::Lt(x, constant(0x1p-126f));
  const F32Vec normal = hn::IfThenElse(tiny, hn::Mul(x, constant(0x1p23f)), x);
  // x = m 2^e with m from sqrt(1/2) to sqrt(2): the bits are moved so that e steps there.
  const I32Vec bits = hn::BitCast(I32(), normal);
  const I32Vec exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(I32(), 0x3f3504f3)));
  const F32Vec m = hn::BitCast(F32(), hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  const F32Vec e = hn::Sub(hn::ConvertTo(F32(), exponent), hn::IfThenElseZero(tiny, constant(23)));
  const F32Vec finite = log_combined(e, hn::Sub(m, constant(1)));

  const F32Vec infinity = hn::Inf(F32());
  const F32Vec to_infinity = hn::IfThenElse(hn::Eq(x, infinity), infinity, finite);
  const F32Vec from_zero = hn::IfThenElse(hn::Eq(x, constant(0)), hn::Neg(infinity), to_infinity);
  const auto outside = hn::Not(hn::Ge(x, constant(0)));
  return hn::IfThenElse(outside, hn::NaN(F32()), from_zero);
}

#endif

/// 1 / x for positive x that are neither tiny nor huge.
HWY_INLINE F32Vec reciprocal(F32Vec x) {
#if HWY_TARGET == HWY_AVX3
  // A division takes as long as all the rest of the functions here; this is within 1 ulp of it.
  const F32Vec near = hn::ApproximateReciprocal(x);
  return hn::MulAdd(near, hn::NegMulAdd(x, near, constant(1)), near);
#else
  return hn::Div(constant(1), x);
#endif
}

/// 1 / (1 + exp(-x)), of which neither side overflows.
HWY_INLINE F32Vec vsigmoid(F32Vec x) {
  const F32Vec e = vexp(hn::Neg(hn::Abs(x)));
  const F32Vec numerator = hn::IfThenElse(hn::Lt(x, constant(0)), e, constant(1));
  return hn::Mul(numerator, reciprocal(hn::Add(constant(1), e)));
}

HWY_INLINE F32Vec vtanh(F32Vec x) {
  const F32Vec x2 = hn::Mul(x, x);
  const F32Vec q = polynomial(x2, -0x1.555548p-2f, 0x1.110c98p-3f, -0x1.b90fc0p-5f, 0x1.586698p-6f, -0x1.963d54p-8f);
  const F32Vec near_zero = hn::MulAdd(hn::Mul(x, x2), q, x);
  // 1 - 2 / (exp(2a) + 1), which from 9.1 on is 1.
  const F32Vec a = bounded(hn::Abs(x), 0.0f, 9.1f);
  F32Vec n;
  const F32Vec p = expm1_reduced(hn::Add(a, a), n);
  const F32Vec power = power_of_two(integer_of(n));
  const F32Vec denominator = hn::Add(hn::MulAdd(power, p, power), constant(1));
  const F32Vec far = hn::NegMulAdd(constant(2), reciprocal(denominator), constant(1));
  return hn::IfThenElse(hn::Lt(a, constant(0.55f)), near_zero, hn::CopySign(far, x));
}

inline constexpr float erf_split = 0.92f;

/// erf(x) for |x| up to erf_split.
HWY_INLINE F32Vec erf_near_zero(F32Vec x) {
  // x + x q, as q is small: its rounding hardly counts.
  const F32Vec q = polynomial(hn::Mul(x, x), 0x1.06eba8p-3f, -0x1.812742p-2f, 0x1.ce2dcap-4f, -0x1.b80962p-6f,
                              0x1.549664p-8f, -0x1.a88d88p-11f, 0x1.574ec0p-14f);
  return hn::MulAdd(x, q, x);
}

/// 1 - erf(a) for a from erf_split on; NaN stays.
HWY_INLINE F32Vec erfc_of_large(F32Vec a) {
  const F32Vec b = bounded(a, erf_split, 10.2f);
  const F32Vec l =
      polynomial(b, -0x1.bb1340p-14f, -0x1.20eca2p+0f, 0x1.767a3cp-2f, -0x1.bb0836p-4f, 0x1.a42614p-6f, -0x1.2f7494p-8f,
                 0x1.4136b8p-11f, -0x1.dda3eep-15f, 0x1.d526e6p-19f, -0x1.101152p-23f, 0x1.194c4ap-29f);
  return vexp(hn::NegMulAdd(b, b, l));
}

HWY_INLINE F32Vec verf(F32Vec x) {
  const F32Vec a = hn::Abs(x);
  const F32Vec far = hn::CopySign(hn::Sub(constant(1), erfc_of_large(a)), x);
  return hn::IfThenElse(hn::Lt(a, constant(erf_split)), erf_near_zero(x), far);
}

/// x Phi(x), with Phi(-|x|) = 2^(p(|x|) - x^2 / log(4)): no difference of near numbers, so the negative tail keeps its
/// digits.
HWY_INLINE F32Vec vgelu(F32Vec x) {
  const F32Vec y = hn::Abs(x);
  const F32Vec p =
      polynomial(y, -1.0f, -0x1.26aedcp+0f, 0x1.0c6e70p-2f, -0x1.adfc96p-5f, 0x1.ccb8cap-8f, -0x1.565bb0p-14f,
                 -0x1.e7943ap-13f, 0x1.f97436p-15f, -0x1.044d66p-17f, 0x1.19335ap-21f, -0x1.f73f6ep-27f);
  const F32Vec t = bounded(hn::NegMulAdd(hn::Mul(y, y), constant(0x1.715476p-1f), p), -150.0f, 0.0f);
  const F32Vec n_plus_magic = hn::Add(t, constant(round_magic));
  const F32Vec f = hn::Sub(t, hn::Sub(n_plus_magic, constant(round_magic)));
  const F32Vec power = polynomial(f, 1.0f, 0x1.62e430p-1f, 0x1.ebfbdcp-3f, 0x1.c6aed8p-5f, 0x1.3b2d68p-7f,
                                  0x1.5f4704p-10f, 0x1.41f618p-13f);
  const F32Vec tail = scaled(power, n_plus_magic);
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, constant(0)), tail, hn::Sub(constant(1), tail)));
}

HWY_INLINE F32Vec vsilu(F32Vec x) { return hn::Mul(x, vsigmoid(x)); }

/// gelu by its usual approximation: x (1 + tanh(u)) / 2, which is x / (1 + exp(-2u)).
HWY_INLINE F32Vec vgelu_tanh(F32Vec x) {
  const F32Vec cubic = hn::MulAdd(hn::Mul(x, x), constant(0.071354816f), constant(1.5957691f));
  return hn::Mul(x, vsigmoid(hn::Mul(x, cubic)));
}

/// max(x, 0), but NaN stays.
HWY_INLINE F32Vec vrelu(F32Vec x) {
#if XRT_CPU_X86_MIN_MAX
  return hn::Max(constant(0), x);
#else
  return hn::IfThenZeroElse(hn::Lt(x, constant(0)), x);
#endif
}

HWY_INLINE F32Vec apply_activation(F32Vec x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return vrelu(x);
    case Activation::gelu:
      return vgelu(x);
    case Activation::silu:
      return vsilu(x);
    case Activation::none:
      break;
  }
  return x;
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
