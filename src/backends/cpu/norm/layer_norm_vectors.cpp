#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/layer_norm_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/layer_norm.h"
#include "backends/cpu/norm/row_moments.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

template <bool weighted, bool biased, class T>
void write_scaled(const T* x, T* out, std::size_t n, float mean, float scale, const float* weight, const float* bias) {
  const F32Vec m = hn::Set(F32(), mean), s = hn::Set(F32(), scale);
  for_vectors(n, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    F32Vec y = hn::Mul(hn::Sub(get(x + i), m), s);
    if constexpr (weighted && biased) {
      y = hn::MulAdd(y, get(weight + i), get(bias + i));
    } else if constexpr (weighted) {
      y = hn::Mul(y, get(weight + i));
    }
    put(y, out + i);
  });
}

template <class T>
HWY_INLINE Moments moments_in(const LayerNormJob& job, const T* x, std::size_t n) {
  if (job.centred) return moments_of(x, n);
  return {static_cast<double>(n), 0, static_cast<double>(squares_of(x, n, 0))};
}

template <class T>
HWY_INLINE void write_in(const LayerNormJob& job, const T* x, T* out, std::size_t n, std::int64_t at,
                         const Moments& row) {
  const auto mean = static_cast<float>(row.mean);
  const auto scale = static_cast<float>(1 / std::sqrt(row.variance() + job.eps));
  if (job.bias != nullptr) return write_scaled<true, true>(x, out, n, mean, scale, job.weight + at, job.bias + at);
  if (job.weight != nullptr) return write_scaled<true, false>(x, out, n, mean, scale, job.weight + at, nullptr);
  write_scaled<false, false, T>(x, out, n, mean, scale, nullptr, nullptr);
}

/// What is normalised, from `offset` on: x, or its sum with the residual, which is stored here.
template <class T>
HWY_INLINE const T* summed(const LayerNormJob& job, const void* x, std::int64_t offset, std::size_t n) {
  const T* from = static_cast<const T*>(x) + offset;
  if (job.residual == nullptr) return from;
  const T* residual = static_cast<const T*>(job.residual) + offset;
  T* sum = static_cast<T*>(job.sum) + offset;
  for_vectors(
      n, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(hn::Add(get(from + i), get(residual + i)), sum + i); });
  return sum;
}

void rows_impl(const LayerNormJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const auto n = static_cast<std::size_t>(job.lines.length);
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = summed<T>(job, x, r * job.lines.length, n);
      write_in(job, row, static_cast<T*>(out) + r * job.lines.length, n, 0, moments_in(job, row, n));
    }
  });
}

Moments moments_impl(const LayerNormJob& job, const void* x, std::int64_t offset, std::int64_t n) {
  return with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    const auto count = static_cast<std::size_t>(n);
    return moments_in(job, summed<decltype(storage)>(job, x, offset, count), count);
  });
}

void write_impl(const LayerNormJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n, std::int64_t at,
                const Moments& row) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const void* from = job.residual == nullptr ? x : job.sum;
    write_in(job, static_cast<const T*>(from) + offset, static_cast<T*>(out) + offset, static_cast<std::size_t>(n), at,
             row);
  });
}

void widen_impl(const void* from, DataType dtype, std::int64_t n, float* to) {
  with_storage(dtype, [&](auto storage) HWY_ATTR {
    const auto* x = static_cast<const decltype(storage)*>(from);
    for_vectors(static_cast<std::size_t>(n),
                [&](std::size_t i, auto get, auto put) HWY_ATTR { put(get(x + i), to + i); });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(rows_impl);
HWY_EXPORT(moments_impl);
HWY_EXPORT(write_impl);
HWY_EXPORT(widen_impl);

void layer_norm_rows(const LayerNormJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(rows_impl)(job, x, out, begin, end);
}

Moments layer_norm_moments(const LayerNormJob& job, const void* x, std::int64_t offset, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(moments_impl)(job, x, offset, n);
}

void layer_norm_write(const LayerNormJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n,
                      std::int64_t at, const Moments& row) {
  HWY_DYNAMIC_DISPATCH(write_impl)(job, x, out, offset, n, at, row);
}

void widen_parameter(const void* from, DataType dtype, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_impl)(from, dtype, n, to);
}

}  // namespace xpuruntime::cpu
#endif
