#include "backends/cpu/conv/columns.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/columns_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/conv/rows.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// What one tap of one channel gives to each of the outputs: a row of the matrix of columns.
template <class T>
HWY_INLINE void fill_tap(const ConvShape& shape, const Columns& c, const T* plane, const Extents& tap, float* to) {
  const auto source = [&](std::size_t i, std::int64_t at) {
    return at * shape.stride[i] + tap[i] * shape.dilation[i] - shape.padding[i];
  };
  std::int64_t x = c.begin % shape.out[2], y = c.begin / shape.out[2] % shape.out[1];
  std::int64_t z = c.begin / shape.out[2] / shape.out[1];
  for (std::int64_t left = c.count; left > 0;) {
    const std::int64_t n = std::min(left, shape.out[2] - x);
    const std::int64_t from_z = source(0, z), from_y = source(1, y);
    if (from_z < 0 || from_z >= shape.in[0] || from_y < 0 || from_y >= shape.in[1]) {
      pad_values(to, n, 0.0f);
    } else {
      take_padded(plane + (from_z * shape.in[1] + from_y) * shape.in[2], static_cast<const T*>(c.end), shape.in[2],
                  source(2, x), shape.stride[2], n, to);
    }
    to += n;
    left -= n;
    x = 0;
    if (++y == shape.out[1]) y = 0, ++z;
  }
}

template <class T>
void fill_all(const ConvShape& shape, const Columns& c) {
  float* to = c.to;
  for (std::int64_t channel = 0; channel < shape.in_channels; ++channel) {
    const T* plane = static_cast<const T*>(c.image) + channel * volume(shape.in);
    Extents tap;
    for (tap[0] = 0; tap[0] < shape.kernel[0]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < shape.kernel[1]; ++tap[1]) {
        for (tap[2] = 0; tap[2] < shape.kernel[2]; ++tap[2], to += c.count) fill_tap(shape, c, plane, tap, to);
      }
    }
  }
}

template <class T>
void put_all(const float* sums, std::int64_t count, float bias, void* to) {
  const F32Vec more = hn::Set(F32(), bias);
  for_vectors(static_cast<std::size_t>(count), [&](std::size_t i, const auto& get, const auto& put) HWY_ATTR {
    put(hn::Add(get(sums + i), more), static_cast<T*>(to) + i);
  });
}

void fill_columns_f32(const ConvShape& shape, const Columns& c) { fill_all<float>(shape, c); }
void fill_columns_f16(const ConvShape& shape, const Columns& c) { fill_all<Half>(shape, c); }
void fill_columns_bf16(const ConvShape& shape, const Columns& c) { fill_all<Bfloat>(shape, c); }
void put_f32(const float* sums, std::int64_t count, float bias, void* to) { put_all<float>(sums, count, bias, to); }
void put_f16(const float* sums, std::int64_t count, float bias, void* to) { put_all<Half>(sums, count, bias, to); }
void put_bf16(const float* sums, std::int64_t count, float bias, void* to) { put_all<Bfloat>(sums, count, bias, to); }

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(fill_columns_f32);
HWY_EXPORT(fill_columns_f16);
HWY_EXPORT(fill_columns_bf16);
HWY_EXPORT(put_f32);
HWY_EXPORT(put_f16);
HWY_EXPORT(put_bf16);

void fill_columns(const ConvShape& shape, const Columns& columns) {
  if (columns.dtype == DataType::float16) return HWY_DYNAMIC_DISPATCH(fill_columns_f16)(shape, columns);
  if (columns.dtype == DataType::bfloat16) return HWY_DYNAMIC_DISPATCH(fill_columns_bf16)(shape, columns);
  HWY_DYNAMIC_DISPATCH(fill_columns_f32)(shape, columns);
}

void put_sums(const float* sums, std::int64_t count, float bias, DataType dtype, void* to) {
  if (dtype == DataType::float16) return HWY_DYNAMIC_DISPATCH(put_f16)(sums, count, bias, to);
  if (dtype == DataType::bfloat16) return HWY_DYNAMIC_DISPATCH(put_bf16)(sums, count, bias, to);
  HWY_DYNAMIC_DISPATCH(put_f32)(sums, count, bias, to);
}

}  // namespace xpuruntime::cpu
#endif
