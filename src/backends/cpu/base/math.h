// Functions of vectors of f32 over their whole range, with denormals, infinities and NaN as from the C library. In ulp:
// exp and log 1, sigmoid, silu and expm1 3, tanh, sin, erf and softplus 4, gelu 3.5 (half a unit more without fused
// multiply-add; below -1 gelu is within 5 x 2^-24 |x|, below -5.4 it is 0). The polynomials and their quotients are
// minimax fits of our own. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_MATH_H_
#undef XRT_CPU_MATH_H_
#else
#define XRT_CPU_MATH_H_
#endif

#include "backends/cpu/base/activation.h"
#include "backends/cpu/base/simd.h"

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

/// Differences of bits, which wrap around: as unsigned numbers, since NEON's are plain C++ and watched for overflow.
HWY_INLINE I32Vec minus(I32Vec a, I32Vec b) {
  const hn::RebindToUnsigned<I32> u32;
  return hn::BitCast(I32(), hn::Sub(hn::BitCast(u32, a), hn::BitCast(u32, b)));
}

HWY_INLINE I32Vec integer_of(F32Vec n_plus_magic) {
  return minus(hn::BitCast(I32(), n_plus_magic), hn::BitCast(I32(), constant(round_magic)));
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
  const I32Vec exponent = hn::ShiftRight<23>(minus(bits, hn::Set(I32(), 0x3f3504f3)));
  const F32Vec m = hn::BitCast(F32(), minus(bits, hn::ShiftLeft<23>(exponent)));
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

/// x (c + P(s) / Q(s)) with s = x^2. The constant c lies among the values of the sum, so that the quotient, whose
/// roundings are the largest, is small beside it. From 9.02 on s stays: the product passes 1 and is held there.
HWY_INLINE F32Vec vtanh(F32Vec x) {
  const F32Vec s = hn::Min(constant(9.02f * 9.02f), hn::Mul(x, x));
  const F32Vec p = polynomial(s, 0.875f, 0x1.34dcacp-4f, 0x1.10c718p-12f, -0x1.572e10p-16f, -0x1.6781f2p-24f);
  const F32Vec q = polynomial(s, 1.0f, 0x1.de5760p-2f, 0x1.a7dee2p-6f, 0x1.584104p-12f, 0x1.a0b65cp-21f);
  const F32Vec slope = hn::MulAdd(p, reciprocal(q), constant(0.125f));
  return bounded(hn::Mul(x, slope), -1.0f, 1.0f);
}

/// Phi(x), the share of a normal distribution below x, with Phi(x) - 1/2 in the form of vtanh. Past 5.4 it is held at 0
/// or 1: what is left of the negative tail would be denormals in the end, a hundred times as slow.
HWY_INLINE F32Vec vphi(F32Vec x) {
  const F32Vec s = hn::Min(constant(5.4f * 5.4f), hn::Mul(x, x));
  const F32Vec p = polynomial(s, 0x1.976f08p-3f, -0x1.11788cp-6f, -0x1.0cab0ap-10f, -0x1.b31b14p-13f, -0x1.10766ap-17f,
                              -0x1.d84c0ep-23f);
  const F32Vec q =
      polynomial(s, 1.0f, 0x1.005356p-2f, 0x1.d0f4dcp-6f, 0x1.e75220p-10f, 0x1.2faafep-14f, 0x1.469320p-20f);
  const F32Vec slope = hn::MulAdd(p, reciprocal(q), constant(0.2f));
  return bounded(hn::MulAdd(x, slope, constant(0.5f)), 0.0f, 1.0f);
}

/// In the form of vtanh; from 3.92 on it is held at 1.
HWY_INLINE F32Vec verf(F32Vec x) {
  const F32Vec s = hn::Min(constant(3.92f * 3.92f), hn::Mul(x, x));
  const F32Vec p = polynomial(s, 0x1.81baeap-1f, 0x1.16f388p-9f, 0x1.464c22p-7f, -0x1.e465fep-10f, -0x1.3cd0cep-13f,
                              -0x1.9a8434p-17f);
  const F32Vec q =
      polynomial(s, 1.0f, 0x1.01102ap-1f, 0x1.d36448p-4f, 0x1.ea8346p-7f, 0x1.30c0e6p-10f, 0x1.3f8994p-15f);
  const F32Vec slope = hn::MulAdd(p, reciprocal(q), constant(0.375f));
  return bounded(hn::Mul(x, slope), -1.0f, 1.0f);
}

/// exp(x) - 1 for x up to 88, which keeps its digits near 0: 2^n p + (2^n - 1), where p is small.
HWY_INLINE F32Vec vexpm1(F32Vec x) {
  F32Vec n;
  const F32Vec p = expm1_reduced(bounded(x, -104.0f, 88.0f), n);
  return hn::Add(scaled(p, n), hn::Sub(scaled(constant(1), n), constant(1)));
}

/// log(1 + exp(x)), as the larger of x and 0 plus log(1 + e) with e = exp(-|x|), which keeps its digits where e is
/// tiny.
HWY_INLINE F32Vec vsoftplus(F32Vec x) {
  const F32Vec e = vexp(hn::Neg(hn::Abs(x)));
  const auto large = hn::Gt(e, constant(0.5f));  // 1 + e = 2 (1 + (e - 1) / 2)
  const F32Vec f = hn::IfThenElse(large, hn::MulSub(e, constant(0.5f), constant(0.5f)), e);
  const F32Vec rest = log_combined(hn::IfThenElseZero(large, constant(1)), f);
  return hn::Add(hn::IfThenZeroElse(hn::Le(x, constant(0)), x), rest);
}

/// The sine of x + quarter pi / 2, for |x| up to 8192: x less n pi / 2, which is taken off in pieces of 11 bits, so
/// that each product with n is exact without fused multiply-add too.
HWY_INLINE F32Vec vsin(F32Vec x, int quarter) {
  const F32Vec n = hn::Round(hn::Mul(x, constant(0x1.45f306p-1f)));
  F32Vec r = x;
  for (const float piece : {0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68cp-39f, 0x1.1a6264p-54f}) {
    r = hn::NegMulAdd(n, constant(piece), r);
  }
  const F32Vec s = hn::Mul(r, r);
  const F32Vec sine = hn::MulAdd(hn::Mul(r, s), polynomial(s, -0x1.555546p-3f, 0x1.11073p-7f, -0x1.99406p-13f), r);
  const F32Vec cosine = hn::MulAdd(hn::Mul(s, s), polynomial(s, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e86ap-16f),
                                   hn::NegMulAdd(constant(0.5f), s, constant(1)));
  const I32Vec turns = hn::Add(hn::ConvertTo(I32(), n), hn::Set(I32(), quarter));
  const auto odd = hn::RebindMask(F32(), hn::Ne(hn::And(turns, hn::Set(I32(), 1)), hn::Zero(I32())));
  // The second bit is the sign.
  const F32Vec sign = hn::BitCast(F32(), hn::ShiftLeft<30>(hn::And(turns, hn::Set(I32(), 2))));
  return hn::Xor(hn::IfThenElse(odd, cosine, sine), sign);
}

HWY_INLINE F32Vec vgelu(F32Vec x) { return hn::Mul(x, vphi(x)); }

HWY_INLINE F32Vec vsilu(F32Vec x) { return hn::Mul(x, vsigmoid(x)); }

/// gelu by its usual approximation: x (1 + tanh(u)) / 2, which is x / (1 + exp(-2u)).
HWY_INLINE F32Vec vgelu_tanh(F32Vec x) {
  const F32Vec cubic = hn::MulAdd(hn::Mul(x, x), constant(0.071354816f), constant(1.5957691f));
  return hn::Mul(x, vsigmoid(hn::Mul(x, cubic)));
}

/// IEEE 754's maximum of x and +0: NaN stays, and -0 becomes +0.
HWY_INLINE F32Vec vrelu(F32Vec x) { return hn::IfThenZeroElse(hn::Le(x, constant(0)), x); }

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
