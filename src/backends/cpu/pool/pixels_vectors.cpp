#include <algorithm>

#include "backends/cpu/pool/vectors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/pixels_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/pool/combine.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// Where the taps of a window lie that are not padding.
template <class T>
struct Taps {
  const T* at[most_pixel_taps];
  std::int64_t count = 0;

  Taps(const PoolShape& s, const PixelSteps& steps, const T* image, std::int64_t z, std::int64_t y, std::int64_t x) {
    for (std::int64_t a = 0; a < s.kernel[0]; ++a) {
      const std::int64_t from_z = z * s.stride[0] + a * s.dilation[0] - s.padding[0];
      if (from_z < 0 || from_z >= s.in[0]) continue;
      for (std::int64_t b = 0; b < s.kernel[1]; ++b) {
        const std::int64_t from_y = y * s.stride[1] + b * s.dilation[1] - s.padding[1];
        if (from_y < 0 || from_y >= s.in[1]) continue;
        const T* row = image + from_z * steps.z + from_y * steps.y;
        for (std::int64_t c = 0; c < s.kernel[2]; ++c) {
          const std::int64_t from_x = x * s.stride[2] + c * s.dilation[2] - s.padding[2];
          if (from_x >= 0 && from_x < s.in[2]) at[count++] = row + from_x * steps.x;
        }
      }
    }
  }
};

HWY_INLINE F32Vec over(F32Vec value, float divisor) {
  return divisor == 1 ? value : hn::Div(value, hn::Set(F32(), divisor));
}

/// Four vectors from channel c on, side by side: one alone would wait for its own last result.
template <class Op, class In, class Out>
HWY_INLINE void combine_four(const Taps<In>& taps, std::int64_t c, float divisor, Out* out) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  F32Vec v0 = hn::Set(F32(), Op::identity), v1 = v0, v2 = v0, v3 = v0;
  for (std::int64_t t = 0; t < taps.count; ++t) {
    const In* at = taps.at[t] + c;
    v0 = Op::combine(v0, load(at));
    v1 = Op::combine(v1, load(at + lanes));
    v2 = Op::combine(v2, load(at + 2 * lanes));
    v3 = Op::combine(v3, load(at + 3 * lanes));
  }
  store(over(v0, divisor), out);
  store(over(v1, divisor), out + lanes);
  store(over(v2, divisor), out + 2 * lanes);
  store(over(v3, divisor), out + 3 * lanes);
}

template <class Op, class In, class Out>
void combine_pixel(const Taps<In>& taps, std::int64_t channels, float divisor, Out* out) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  std::int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) combine_four<Op>(taps, c, divisor, out + c);
  for (; c < channels; c += lanes) {
    const std::int64_t left = channels - c;
    F32Vec value = hn::Set(F32(), Op::identity);
    if (left >= lanes) {
      for (std::int64_t t = 0; t < taps.count; ++t) value = Op::combine(value, load(taps.at[t] + c));
    } else {
      for (std::int64_t t = 0; t < taps.count; ++t) {
        value = Op::combine(value, load_first(taps.at[t] + c, static_cast<std::size_t>(left)));
      }
    }
    put_some(over(value, divisor), out + c, left);
  }
}

/// The taps of a large window that are not padding.
template <class T>
struct Box {
  const T* first;
  Extents count, step;

  Box(const PoolShape& s, const PixelSteps& steps, const T* image, const Extents& at) : first(image) {
    const Extents each = {steps.z, steps.y, steps.x};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t before = at[i] * s.stride[i] - s.padding[i], dilation = s.dilation[i];
      const std::int64_t from = before < 0 ? (-before + dilation - 1) / dilation : 0;
      const std::int64_t to = std::min(s.kernel[i], (s.in[i] - before + dilation - 1) / dilation);
      count[i] = std::max<std::int64_t>(to - from, 0);
      step[i] = dilation * each[i];
      if (count[i] > 0) first += (before + from * dilation) * each[i];
    }
  }

  /// Where row `row` of the window begins.
  const T* row(std::int64_t row) const { return first + row / count[1] * step[0] + row % count[1] * step[1]; }
  std::int64_t rows() const { return count[2] > 0 ? count[0] * count[1] : 0; }
};

/// Row by row: sums of so many values lose fewer digits in two steps.
template <class Op, class In, class Out>
void combine_box(const Box<In>& box, std::int64_t channels, float divisor, Out* out) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const F32Vec identity = hn::Set(F32(), Op::identity);
  std::int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) {
    F32Vec v0 = identity, v1 = identity, v2 = identity, v3 = identity;
    for (std::int64_t row = 0; row < box.rows(); ++row) {
      F32Vec r0 = identity, r1 = identity, r2 = identity, r3 = identity;
      const In* at = box.row(row) + c;
      for (std::int64_t x = 0; x < box.count[2]; ++x, at += box.step[2]) {
        r0 = Op::combine(r0, load(at));
        r1 = Op::combine(r1, load(at + lanes));
        r2 = Op::combine(r2, load(at + 2 * lanes));
        r3 = Op::combine(r3, load(at + 3 * lanes));
      }
      v0 = Op::combine(v0, r0);
      v1 = Op::combine(v1, r1);
      v2 = Op::combine(v2, r2);
      v3 = Op::combine(v3, r3);
    }
    store(over(v0, divisor), out + c);
    store(over(v1, divisor), out + c + lanes);
    store(over(v2, divisor), out + c + 2 * lanes);
    store(over(v3, divisor), out + c + 3 * lanes);
  }
  for (; c < channels; c += lanes) {
    const std::int64_t left = std::min(channels - c, lanes);
    F32Vec value = identity;
    for (std::int64_t row = 0; row < box.rows(); ++row) {
      F32Vec sum = identity;
      const In* at = box.row(row) + c;
      for (std::int64_t x = 0; x < box.count[2]; ++x, at += box.step[2]) {
        sum = Op::combine(sum, load_first(at, static_cast<std::size_t>(left)));
      }
      value = Op::combine(value, sum);
    }
    put_some(over(value, divisor), out + c, left);
  }
}

template <class Op, class In, class Out>
void run_pixel_rows(const PoolPixels& pixels) {
  const PoolShape& s = *pixels.shape;
  const PixelSteps &in = pixels.in_steps, &out = pixels.out_steps;
  const bool large = s.kernel[0] * s.kernel[1] * s.kernel[2] > most_pixel_taps;
  for (std::int64_t row = pixels.begin; row < pixels.end; ++row) {
    const std::int64_t y = row % s.out[1], z = row / s.out[1] % s.out[0], image = row / s.out[1] / s.out[0];
    for (std::int64_t x = 0; x < s.out[2]; ++x) {
      const auto* from = static_cast<const In*>(pixels.in) + image * in.image;
      auto* to = static_cast<Out*>(pixels.out) + image * out.image + z * out.z + y * out.y + x * out.x;
      const std::int64_t count = s.average ? pixels.z_counts[z] * pixels.y_counts[y] * pixels.x_counts[x] : 1;
      const auto divisor = static_cast<float>(count);
      if (large) {
        combine_box<Op>(Box<In>(s, in, from, {z, y, x}), s.channels, divisor, to);
      } else {
        combine_pixel<Op>(Taps<In>(s, in, from, z, y, x), s.channels, divisor, to);
      }
    }
  }
}

template <class In, class Out>
void run_pixels(const PoolPixels& pixels) {
  if (pixels.shape->average) return run_pixel_rows<Sum, In, Out>(pixels);
  run_pixel_rows<Maximum, In, Out>(pixels);
}

void run_any_pixels(const PoolPixels& pixels, DataType in, DataType out) {
  with_storage(
      in, [&](auto from) { with_storage(out, [&](auto to) { run_pixels<decltype(from), decltype(to)>(pixels); }); });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(run_any_pixels);

void run_pool_pixels(const PoolPixels& pixels, DataType in, DataType out) {
  HWY_DYNAMIC_DISPATCH(run_any_pixels)(pixels, in, out);
}

}  // namespace xpuruntime::cpu
#endif
