#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/batch_norm_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/batch_norm.h"
#include "backends/cpu/reduce/accumulate.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// The sum of map(x) over the same part of several images' planes; the lanes are added once, at the end.
template <class T, class Map>
HWY_INLINE float sum_over(const T* x, std::int64_t images, std::int64_t image, std::size_t n, const Map& map) {
  F32Vec total = hn::Zero(F32());
  for (std::int64_t i = 0; i < images; ++i) total = hn::Add(total, fold_lanes<SumFold>(x + i * image, n, map));
  return SumFold::lanes(total);
}

Moments plane_moments_impl(const BatchNormJob& job, const void* x, std::int64_t channel, std::int64_t first,
                           std::int64_t last, std::int64_t from, std::int64_t to) {
  return with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    const std::int64_t image = job.channels * job.plane;
    const auto* data = static_cast<const decltype(storage)*>(x) + first * image + channel * job.plane + from;
    const auto n = static_cast<std::size_t>(to - from);
    const std::int64_t count = (last - first) * (to - from);
    const float sum = sum_over(data, last - first, image, n, [](F32Vec v) HWY_ATTR { return v; });
    const float mean = sum / static_cast<float>(count);
    const F32Vec m = hn::Set(F32(), mean);
    const float squares = sum_over(data, last - first, image, n, [m](F32Vec v) HWY_ATTR {
      const F32Vec d = hn::Sub(v, m);
      return hn::Mul(d, d);
    });
    return Moments{static_cast<double>(count), static_cast<double>(mean), static_cast<double>(squares)};
  });
}

void write_planes_impl(const BatchNormJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end,
                       std::int64_t step, BatchNormFactors factors) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    for (std::int64_t p = begin; p < end; p += step) {
      const std::int64_t c = p % job.channels;
      const T* from = static_cast<const T*>(x) + p * job.plane;
      T* to = static_cast<T*>(out) + p * job.plane;
      const F32Vec mean = hn::Set(F32(), factors.mean[c]), scale = hn::Set(F32(), factors.scale[c]);
      const F32Vec bias = hn::Set(F32(), factors.bias[c]);
      for_vectors(static_cast<std::size_t>(job.plane), [&](std::size_t i, auto get, auto put) HWY_ATTR {
        put(hn::MulAdd(hn::Sub(get(from + i), mean), scale, bias), to + i);
      });
    }
  });
}

/// A vector of channels, a channel in each lane.
template <class T, class Load, class Store>
HWY_INLINE void channel_moments(const T* x, std::int64_t rows, std::int64_t step, float* mean, float* squares,
                                const Load& get, const Store& put) {
  F32Vec sum = hn::Zero(F32()), other = sum;
  std::int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    sum = hn::Add(sum, get(x + r * step));
    other = hn::Add(other, get(x + (r + 1) * step));
  }
  if (r < rows) sum = hn::Add(sum, get(x + r * step));
  const F32Vec m = hn::Div(hn::Add(sum, other), hn::Set(F32(), static_cast<float>(rows)));
  F32Vec total = hn::Zero(F32());
  for (r = 0; r < rows; ++r) {
    const F32Vec d = hn::Sub(get(x + r * step), m);
    total = hn::MulAdd(d, d, total);
  }
  put(m, mean);
  put(total, squares);
}

void row_moments_impl(const BatchNormJob& job, const void* x, std::int64_t first, std::int64_t last, std::int64_t begin,
                      std::int64_t end, float* means, float* squares) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    const auto* data = static_cast<const decltype(storage)*>(x) + first * job.channels + begin;
    for_vectors(static_cast<std::size_t>(end - begin), [&](std::size_t i, auto get, auto put) HWY_ATTR {
      channel_moments(data + i, last - first, job.channels, means + i, squares + i, get, put);
    });
  });
}

void write_rows_impl(const BatchNormJob& job, const void* x, void* out, std::int64_t first, std::int64_t last,
                     BatchNormFactors factors) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    for (std::int64_t r = first; r < last; ++r) {
      const T* from = static_cast<const T*>(x) + r * job.channels;
      T* to = static_cast<T*>(out) + r * job.channels;
      for_vectors(static_cast<std::size_t>(job.channels), [&](std::size_t i, auto get, auto put) HWY_ATTR {
        const F32Vec distance = hn::Sub(get(from + i), get(factors.mean + i));
        put(hn::MulAdd(distance, get(factors.scale + i), get(factors.bias + i)), to + i);
      });
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(plane_moments_impl);
HWY_EXPORT(write_planes_impl);
HWY_EXPORT(row_moments_impl);
HWY_EXPORT(write_rows_impl);

Moments plane_moments(const BatchNormJob& job, const void* x, std::int64_t channel, std::int64_t first,
                      std::int64_t last, std::int64_t from, std::int64_t to) {
  return HWY_DYNAMIC_DISPATCH(plane_moments_impl)(job, x, channel, first, last, from, to);
}

void write_planes(const BatchNormJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end,
                  std::int64_t step, BatchNormFactors factors) {
  HWY_DYNAMIC_DISPATCH(write_planes_impl)(job, x, out, begin, end, step, factors);
}

void row_moments(const BatchNormJob& job, const void* x, std::int64_t first, std::int64_t last, std::int64_t begin,
                 std::int64_t end, float* means, float* squares) {
  HWY_DYNAMIC_DISPATCH(row_moments_impl)(job, x, first, last, begin, end, means, squares);
}

void write_rows(const BatchNormJob& job, const void* x, void* out, std::int64_t first, std::int64_t last,
                BatchNormFactors factors) {
  HWY_DYNAMIC_DISPATCH(write_rows_impl)(job, x, out, first, last, factors);
}

}  // namespace xpuruntime::cpu
#endif
