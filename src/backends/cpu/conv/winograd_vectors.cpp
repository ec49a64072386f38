#include "backends/cpu/conv/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/winograd_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/conv/products.h"
#include "backends/cpu/conv/rows.h"
#include "backends/cpu/conv/winograd_transforms.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// Applies a transform along both dims of a square of vectors: get(i, j) gives them, put(i, j, vector) takes the
/// result.
template <int from, int to, class Transform, class Get, class Put>
HWY_INLINE void transform_square(const Transform& transform, const Get& get, const Put& put) {
  F32Vec half[to][from];
  XRT_UNROLL
  for (int j = 0; j < from; ++j) {
    F32Vec column[from], done[to];
    XRT_UNROLL
    for (int i = 0; i < from; ++i) column[i] = get(i, j);
    transform(column, done);
    XRT_UNROLL
    for (int i = 0; i < to; ++i) half[i][j] = done[i];
  }
  XRT_UNROLL
  for (int i = 0; i < to; ++i) {
    F32Vec done[to];
    transform(half[i], done);
    XRT_UNROLL
    for (int j = 0; j < to; ++j) put(i, j, done[j]);
  }
}

template <int outputs>
void transform_weight_row(const WinogradWeights& w) {
  constexpr int side = outputs + 2;
  const F32 d;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  HWY_ALIGN float taps[9][hn::MaxLanes(F32())] = {};
  for (std::int64_t c = 0; c < w.channels; c += lanes) {
    const std::int64_t n = std::min(lanes, w.channels - c);
    for (std::int64_t i = 0; i < n; ++i) {
      for (int t = 0; t < 9; ++t) taps[t][i] = w.from[(c + i) * 9 + t];
    }
    transform_square<3, side>([](const auto& in, auto& out) HWY_ATTR { transform_weights(in, out); },
                              [&](int i, int j) HWY_ATTR { return hn::Load(d, taps[3 * i + j]); },
                              [&](int i, int j, F32Vec value) HWY_ATTR {
                                float* to = w.to + (i * side + j) * w.plane + c;
                                if (n == lanes) return store(value, to);
                                store_first(value, to, static_cast<std::size_t>(n));
                              });
  }
}

template <int outputs>
void transform_block_inputs(const WinogradBlock& b) {
  constexpr int side = outputs + 2;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t plane = b.in_channels * b.room;
  for (std::int64_t c = 0; c < b.in_channels; ++c) {
    for (std::int64_t p = b.begin; p < b.end; p += lanes) {
      const float* from = b.inputs + c * b.channel_size + p;
      float* to = b.in_scratch + c * b.room + p - b.begin;
      transform_square<side, side>([](const auto& in, auto& out) HWY_ATTR { transform_inputs(in, out); },
                                   [&](int i, int j) HWY_ATTR { return load(from + b.offsets[i * side + j]); },
                                   [&](int i, int j, F32Vec value)
                                       HWY_ATTR { store(value, to + (i * side + j) * plane); });
    }
  }
}

template <int outputs>
void multiply_block(const WinogradBlock& b) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t vectors = (b.end - b.begin + lanes - 1) / lanes;
  for (std::int64_t value = 0; value < (outputs + 2) * (outputs + 2); ++value) {
    for (std::int64_t v = 0; v < vectors; v += most_vectors) {
      const Products products{.weights = b.weights + value * b.out_channels * b.in_channels,
                              .weights_row = b.in_channels,
                              .inputs = b.in_scratch + value * b.in_channels * b.room + v * lanes,
                              .offsets = b.row_offsets,
                              .count = b.in_channels,
                              .sums = b.out_scratch + value * b.out_channels * b.room + v * lanes,
                              .sums_row = b.room,
                              .fresh = true};
      add_all_products(products, b.out_channels, std::min<std::int64_t>(most_vectors, vectors - v));
    }
  }
}

HWY_INLINE void store_interleaved(const F32Vec (&v)[2], float* to) { hn::StoreInterleaved2(v[0], v[1], F32(), to); }
HWY_INLINE void store_interleaved(const F32Vec (&v)[4], float* to) {
  hn::StoreInterleaved4(v[0], v[1], v[2], v[3], F32(), to);
}

/// The rows of pixels under the block's tiles, one channel at a time.
template <int outputs>
struct PixelRows {
  static constexpr std::int64_t length = winograd_most_tiles * outputs;
  HWY_ALIGN float values[outputs][length + 16];  // whole vectors may be read from any place
};

template <int outputs>
HWY_INLINE void restore_pixels(const WinogradBlock& b, std::int64_t channel, PixelRows<outputs>& pixels) {
  constexpr int side = outputs + 2;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t plane = b.out_channels * b.room;
  const F32Vec bias = hn::Set(F32(), b.bias == nullptr ? 0.0f : b.bias[channel]);
  for (std::int64_t p = 0; p < b.end - b.begin; p += lanes) {
    const float* from = b.out_scratch + channel * b.room + p;
    F32Vec rows[outputs][outputs];
    transform_square<side, outputs>([](const auto& in, auto& out) HWY_ATTR { transform_outputs(in, out); },
                                    [&](int i, int j) HWY_ATTR { return load(from + (i * side + j) * plane); },
                                    [&](int i, int j, F32Vec v) HWY_ATTR { rows[i][j] = hn::Add(v, bias); });
    for (int i = 0; i < outputs; ++i) store_interleaved(rows[i], pixels.values[i] + p * outputs);
  }
}

template <int outputs, class T>
HWY_INLINE void put_pixels(const WinogradBlock& b, std::int64_t channel, const PixelRows<outputs>& pixels) {
  T* out = static_cast<T*>(b.out) + channel * b.height * b.width;
  for (std::int64_t y = b.begin / b.row; y * b.row < b.end; ++y) {
    const std::int64_t from = std::max(b.begin, y * b.row), to = std::min(b.end, y * b.row + b.out_row);
    if (from >= to) continue;
    const std::int64_t x = (from - y * b.row) * outputs;
    const std::int64_t count = std::min((to - from) * outputs, b.width - x);
    for (std::int64_t i = 0; i < outputs && y * outputs + i < b.height; ++i) {
      put_row(pixels.values[i] + (from - b.begin) * outputs, out + (y * outputs + i) * b.width + x, count);
    }
  }
}

template <int outputs, class T>
void run_tiles(const WinogradBlock& block) {
  transform_block_inputs<outputs>(block);
  multiply_block<outputs>(block);
  PixelRows<outputs> pixels;
  for (std::int64_t channel = 0; channel < block.out_channels; ++channel) {
    restore_pixels<outputs>(block, channel, pixels);
    put_pixels<outputs, T>(block, channel, pixels);
  }
}

template <class T>
void run_winograd(const WinogradBlock& block) {
  if (block.outputs == 2) return run_tiles<2, T>(block);
  run_tiles<4, T>(block);
}

void run_winograd_f32(const WinogradBlock& block) { run_winograd<float>(block); }
void run_winograd_f16(const WinogradBlock& block) { run_winograd<Half>(block); }
void run_winograd_bf16(const WinogradBlock& block) { run_winograd<Bfloat>(block); }
void transform_weight_rows(const WinogradWeights& weights) {
  if (weights.outputs == 2) return transform_weight_row<2>(weights);
  transform_weight_row<4>(weights);
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(transform_weight_rows);
HWY_EXPORT(run_winograd_f32);
HWY_EXPORT(run_winograd_f16);
HWY_EXPORT(run_winograd_bf16);

void run_winograd_weights(const WinogradWeights& weights) { HWY_DYNAMIC_DISPATCH(transform_weight_rows)(weights); }

void run_winograd_block(const WinogradBlock& block, DataType out) {
  if (out == DataType::float16) return HWY_DYNAMIC_DISPATCH(run_winograd_f16)(block);
  if (out == DataType::bfloat16) return HWY_DYNAMIC_DISPATCH(run_winograd_bf16)(block);
  HWY_DYNAMIC_DISPATCH(run_winograd_f32)(block);
}

}  // namespace xpuruntime::cpu
#endif
