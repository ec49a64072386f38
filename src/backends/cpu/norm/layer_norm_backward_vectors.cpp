#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/layer_norm_backward_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/layer_norm.h"
#include "backends/cpu/norm/row_moments.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Moments moments_of_row(const LayerNormJob& job, const T* x) {
  Moments all;
  for (std::int64_t at = 0; at < job.lines.length; at += layer_norm_chunk) {
    const auto n = static_cast<std::size_t>(std::min(layer_norm_chunk, job.lines.length - at));
    all.add(job.centred ? moments_of(x + at, n)
                        : Moments{static_cast<double>(n), 0, static_cast<double>(squares_of(x + at, n, 0))});
  }
  return all;
}

/// The sums over a row that its gradient needs, and its part of the sums over all rows.
struct RowSums {
  float plain = 0;    // of g w
  float along_x = 0;  // of g w times the normalised x
};

template <class T>
RowSums add_row(const LayerNormJob& job, const T* x, const T* g, float mean, float scale, float* weight_sums,
                float* bias_sums) {
  const F32Vec m = hn::Set(F32(), mean), s = hn::Set(F32(), scale);
  RowSums sums;
  for (std::int64_t at = 0; at < job.lines.length; at += layer_norm_chunk) {
    F32Vec plain = hn::Zero(F32()), along_x = plain;
    const std::int64_t count = std::min(layer_norm_chunk, job.lines.length - at);
    for_vectors(static_cast<std::size_t>(count), [&](std::size_t j, auto get, auto put) HWY_ATTR {
      const std::size_t i = static_cast<std::size_t>(at) + j;
      const F32Vec gradient = get(g + i);  // 0 past the end, and so is all that it multiplies
      const F32Vec normal = hn::Mul(hn::Sub(get(x + i), m), s);
      const F32Vec gw = job.weight == nullptr ? gradient : hn::Mul(gradient, get(job.weight + i));
      plain = hn::Add(plain, gw);
      along_x = hn::MulAdd(gw, normal, along_x);
      if (weight_sums != nullptr) put(hn::MulAdd(gradient, normal, get(weight_sums + i)), weight_sums + i);
      if (bias_sums != nullptr) put(hn::Add(gradient, get(bias_sums + i)), bias_sums + i);
    });
    sums.plain += SumFold::lanes(plain);
    sums.along_x += SumFold::lanes(along_x);
  }
  return sums;
}

template <class T>
void write_row(const LayerNormJob& job, const T* x, const T* g, float mean, float scale, const RowSums& sums, T* out) {
  const auto count = static_cast<float>(job.lines.length);
  const F32Vec m = hn::Set(F32(), mean), s = hn::Set(F32(), scale);
  const F32Vec plain = hn::Set(F32(), job.centred ? sums.plain / count : 0.0f);
  const F32Vec along_x = hn::Set(F32(), sums.along_x / count);
  for_vectors(static_cast<std::size_t>(job.lines.length), [&](std::size_t i, auto get, auto put) HWY_ATTR {
    const F32Vec normal = hn::Mul(hn::Sub(get(x + i), m), s);
    const F32Vec gw = job.weight == nullptr ? get(g + i) : hn::Mul(get(g + i), get(job.weight + i));
    put(hn::Mul(s, hn::Sub(hn::Sub(gw, plain), hn::Mul(normal, along_x))), out + i);
  });
}

}  // namespace

void gradient_of_rows(const LayerNormGradient& to, std::int64_t begin, std::int64_t end, float* weight_sums,
                      float* bias_sums) {
  const LayerNormJob& job = to.job;
  for (float* sums : {weight_sums, bias_sums}) {
    if (sums != nullptr) std::fill_n(sums, job.lines.length, 0.0f);
  }
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = static_cast<const T*>(to.x) + r * job.lines.length;
      const T* g = static_cast<const T*>(to.gradient) + r * job.lines.length;
      const Moments moments = moments_of_row(job, x);
      const auto mean = static_cast<float>(moments.mean);
      const auto scale = static_cast<float>(1 / std::sqrt(moments.variance() + job.eps));
      const RowSums sums = add_row(job, x, g, mean, scale, weight_sums, bias_sums);
      write_row(job, x, g, mean, scale, sums, static_cast<T*>(to.out) + r * job.lines.length);
    }
  });
}

void add_parts(const float* parts, std::int64_t count, std::int64_t step, std::int64_t n, DataType dtype, void* out) {
  with_storage(dtype, [&](auto storage) HWY_ATTR {
    auto* to = static_cast<decltype(storage)*>(out);
    for_vectors(static_cast<std::size_t>(n), [&](std::size_t i, auto get, auto put) HWY_ATTR {
      F32Vec sum = hn::Zero(F32());
      for (std::int64_t p = 0; p < count; ++p) sum = hn::Add(sum, get(parts + p * step + i));
      put(sum, to + i);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(gradient_of_rows);
HWY_EXPORT(add_parts);

void layer_norm_gradient(const LayerNormGradient& to, std::int64_t begin, std::int64_t end, float* weight_sums,
                         float* bias_sums) {
  HWY_DYNAMIC_DISPATCH(gradient_of_rows)(to, begin, end, weight_sums, bias_sums);
}

void layer_norm_add_parts(const float* parts, std::int64_t count, std::int64_t step, std::int64_t n, DataType dtype,
                          void* out) {
  HWY_DYNAMIC_DISPATCH(add_parts)(parts, count, step, n, dtype, out);
}

}  // namespace xpuruntime::cpu
#endif
