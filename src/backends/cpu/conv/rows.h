// Rows of values between tensors and f32 scratch. Included once for each target, as simd.h is.
#if defined(XRT_CPU_CONV_ROWS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_CONV_ROWS_H_
#undef XRT_CPU_CONV_ROWS_H_
#else
#define XRT_CPU_CONV_ROWS_H_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cpu/base/simd.h"
#include "xpuruntime/core/float_formats.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE float widened(float value) { return value; }
HWY_INLINE float widened(Half value) { return static_cast<float>(decode_float16(value.bits)); }
HWY_INLINE float widened(Bfloat value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

// Every second value of two vectors' worth of memory, and every fourth of four.
template <class T>
HWY_INLINE F32Vec load_every_second(const T* from) {
#if HWY_TARGET == HWY_SCALAR
  return load(from);
#else
  return hn::ConcatEven(F32(), load(from + f32_lanes()), load(from));
#endif
}
template <class T>
HWY_INLINE F32Vec load_every_fourth(const T* from) {
#if HWY_TARGET == HWY_SCALAR
  return load(from);
#else
  return hn::ConcatEven(F32(), load_every_second(from + 2 * f32_lanes()), load_every_second(from));
#endif
}

/// to[i] = from[i * stride] for i < count. Reads up to `end`, and may write up to a vector less one past `count`.
template <class T>
HWY_INLINE void take_strided(const T* from, const T* end, std::int64_t stride, std::int64_t count, float* to) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t readable = end - from;
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i < count && i + lanes <= readable; i += lanes) store(load(from + i), to + i);
  } else if (stride == 2) {
    for (; i < count && 2 * (i + lanes) <= readable; i += lanes) store(load_every_second(from + 2 * i), to + i);
  } else if (stride == 4) {
    for (; i < count && 4 * (i + lanes) <= readable; i += lanes) store(load_every_fourth(from + 4 * i), to + i);
  }
  for (; i < count; ++i) to[i] = widened(from[i * stride]);
}

/// Fills n values, in whole vectors.
HWY_INLINE void pad_values(float* to, std::int64_t n, float pad) {
  const F32Vec value = hn::Set(F32(), pad);
  for (std::int64_t i = 0; i < n; i += static_cast<std::int64_t>(f32_lanes())) store(value, to + i);
}

/// to[i] = row[first + i * stride] for i < count, `pad` where that lies outside [0, width). Reads and writes past the
/// ends as take_strided does, so rows must be filled in the order of their addresses.
template <class T>
HWY_INLINE void take_padded(const T* row, const T* end, std::int64_t width, std::int64_t first, std::int64_t stride,
                            std::int64_t count, float* to, float pad = 0) {
  const auto until = [&](std::int64_t bound) {  // the first i that reaches the bound
    return bound <= first ? 0 : std::min(count, (bound - first + stride - 1) / stride);
  };
  const std::int64_t begin = until(0), inside = until(width);
  pad_values(to, begin, pad);
  if (inside > begin) take_strided(row + first + begin * stride, end, stride, inside - begin, to + begin);
  pad_values(to + inside, count - inside, pad);
}

/// Stores exactly n values. Whole vectors may be read from `from`.
template <class T>
HWY_INLINE void put_row(const float* from, T* to, std::int64_t n) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(load(from + i), to + i);
  if (i == n) return;
  if constexpr (sizeof(T) == sizeof(float)) {
    // A store that overlaps the one before is cheaper than one of a part of a vector.
    const hn::CappedTag<float, 4> quad;
    if (n < 4) {
      for (; i < n; ++i) to[i] = from[i];
      return;
    }
    for (; i + 4 <= n; i += 4) hn::StoreU(hn::LoadU(quad, from + i), quad, to + i);
    hn::StoreU(hn::LoadU(quad, from + n - 4), quad, to + n - 4);
  } else {
    store_first(load(from + i), to + i, static_cast<std::size_t>(n - i));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
