#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/loss/pointwise_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/base/math.h"
#include "backends/cpu/base/simd.h"
#include "backends/cpu/loss/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// 0 log 0 is 0.
struct KlDiv {
  static HWY_INLINE F32Vec loss(F32Vec x, F32Vec t, F32Vec) {
    const F32Vec log_t = hn::IfThenZeroElse(hn::Eq(t, constant(0)), vlog(t));
    return hn::Mul(t, hn::Sub(log_t, x));
  }
};

struct KlDivLogTarget {
  static HWY_INLINE F32Vec loss(F32Vec x, F32Vec t, F32Vec) { return hn::Mul(vexp(t), hn::Sub(t, x)); }
};

struct Poisson {
  static HWY_INLINE F32Vec loss(F32Vec x, F32Vec t, F32Vec eps) { return hn::NegMulAdd(t, vlog(hn::Add(x, eps)), x); }
};

struct PoissonLogInput {
  static HWY_INLINE F32Vec loss(F32Vec x, F32Vec t, F32Vec) { return hn::NegMulAdd(t, x, vexp(x)); }
};

/// t log(t) - t + log(2 pi t) / 2 for t > 1, else 0.
HWY_INLINE F32Vec stirling(F32Vec t) {
  const F32Vec log_t = vlog(t);
  const F32Vec half_log = hn::MulAdd(log_t, constant(0.5f), constant(0.918938533f));  // log(2 pi) / 2
  const F32Vec sum = hn::Add(hn::MulAdd(t, log_t, hn::Neg(t)), half_log);
  return hn::IfThenElseZero(hn::Gt(t, constant(1)), sum);
}

template <class Loss>
struct WithFactorial {
  static HWY_INLINE F32Vec loss(F32Vec x, F32Vec t, F32Vec eps) { return hn::Add(Loss::loss(x, t, eps), stirling(t)); }
};

/// `out` may be null: then only the sum is wanted.
template <class Loss, class T>
float losses_of(const T* x, const T* t, std::size_t n, float eps, T* out) {
  const F32Vec e = constant(eps);
  F32Vec sum = hn::Zero(F32());
  for_vectors(n, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    const F32Vec loss = Loss::loss(get(x + i), get(t + i), e);
    if (out != nullptr) put(loss, out + i);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(F32(), std::min(n - i, f32_lanes())), loss));
  });
  return hn::GetLane(hn::SumOfLanes(F32(), sum));
}

template <class Loss>
float with_dtype(const PointwiseLossTerms& terms, DataType dtype, const void* x, const void* target,
                 std::int64_t offset, std::int64_t n, void* out) {
  return with_storage(dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const T *from = static_cast<const T*>(x) + offset, *t = static_cast<const T*>(target) + offset;
    const auto count = static_cast<std::size_t>(n);
    return losses_of<Loss>(from, t, count, static_cast<float>(terms.eps),
                           out == nullptr ? nullptr : static_cast<T*>(out) + offset);
  });
}

float losses_impl(const PointwiseLossTerms& terms, DataType dtype, const void* x, const void* target,
                  std::int64_t offset, std::int64_t n, void* out) {
  switch (terms.kind) {
    case PointwiseLoss::divergence:
      return with_dtype<KlDiv>(terms, dtype, x, target, offset, n, out);
    case PointwiseLoss::divergence_of_logs:
      return with_dtype<KlDivLogTarget>(terms, dtype, x, target, offset, n, out);
    case PointwiseLoss::poisson:
      return terms.full ? with_dtype<WithFactorial<Poisson>>(terms, dtype, x, target, offset, n, out)
                        : with_dtype<Poisson>(terms, dtype, x, target, offset, n, out);
    case PointwiseLoss::poisson_of_logs:
      return terms.full ? with_dtype<WithFactorial<PoissonLogInput>>(terms, dtype, x, target, offset, n, out)
                        : with_dtype<PoissonLogInput>(terms, dtype, x, target, offset, n, out);
  }
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(losses_impl);

float pointwise_losses(const PointwiseLossTerms& terms, DataType dtype, const void* x, const void* target,
                       std::int64_t offset, std::int64_t n, void* out) {
  return HWY_DYNAMIC_DISPATCH(losses_impl)(terms, dtype, x, target, offset, n, out);
}

}  // namespace xpuruntime::cpu
#endif
