#include "backends/cpu/conv/direct.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/direct_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/conv/products.h"
#include "backends/cpu/conv/rows.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// The sums of one tile, in memory that stays in the first cache.
struct TileSums {
  static constexpr std::int64_t row = direct_tile;
  HWY_ALIGN float values[direct_channels * row];
};

HWY_INLINE void start_sums(const DirectBlock& block, TileSums& sums) {
  for (std::int64_t r = 0; r < block.channels; ++r) {
    const float start = block.bias == nullptr ? 0.0f : block.bias[r];
    std::fill_n(sums.values + r * TileSums::row, TileSums::row, start);
  }
}

/// Inputs gathered from a tensor: rows that lie far apart there would miss the caches and the address cache alike.
struct Panel {
  HWY_ALIGN float values[panel_depth * direct_tile];
};

HWY_INLINE void fill_panel(const DirectBlock& block, std::int64_t k, std::int64_t count, std::int64_t begin,
                           std::int64_t positions, Panel& panel) {
  with_storage(block.panel.dtype, [&](auto value) HWY_ATTR {
    using T = decltype(value);
    const T* from = static_cast<const T*>(block.panel.first) + k * block.panel.channel + begin;
    for (std::int64_t i = 0; i < count; ++i, from += block.panel.channel) {
      take_strided(from, static_cast<const T*>(block.panel.end), 1, positions, panel.values + i * direct_tile);
    }
  });
}

/// Takes some channels' worth of inputs at a time, which then stay in the first cache for all output channels.
HWY_INLINE void sum_tile(const DirectBlock& block, std::int64_t begin, std::int64_t end, std::int64_t vectors,
                         Panel& panel, TileSums& sums) {
  for (std::int64_t k = 0; k < block.depth; k += block.depth_step) {
    Products products{.weights = block.weights + k,
                      .weights_row = block.depth,
                      .inputs = block.inputs == nullptr ? nullptr : block.inputs + begin,
                      .offsets = block.offsets + k,
                      .count = std::min(block.depth_step, block.depth - k),
                      .sums = sums.values,
                      .sums_row = TileSums::row};
    if (block.inputs == nullptr) {
      fill_panel(block, k, products.count, begin, end - begin, panel);
      products.inputs = panel.values;
      products.offsets = block.offsets;
    }
    add_all_products(products, block.channels, vectors);
  }
}

template <class T>
void put_tile(const DirectBlock& block, std::int64_t begin, std::int64_t end, const TileSums& sums) {
  for (std::int64_t y = begin / block.row; y * block.row < end; ++y) {
    const std::int64_t from = std::max(begin, y * block.row);
    const std::int64_t to = std::min(end, y * block.row + block.out_row);
    T* out = static_cast<T*>(block.out) + y * block.out_row + (from - y * block.row);
    for (std::int64_t r = 0; from < to && r < block.channels; ++r) {
      put_row(sums.values + r * TileSums::row + (from - begin), out + r * block.out_channel, to - from);
    }
  }
}

template <class T>
void run_block(const DirectBlock& block) {
  TileSums sums;
  Panel panel;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t vectors = (block.end - block.begin + lanes - 1) / lanes;
  const std::int64_t tiles = (vectors + most_vectors - 1) / most_vectors;
  for (std::int64_t i = 0; i < tiles; ++i) {
    // Tiles of like size: one of two vectors and one of two are faster than three and one.
    const std::int64_t first = i * vectors / tiles, last = (i + 1) * vectors / tiles;
    const std::int64_t begin = block.begin + first * lanes;
    const std::int64_t end = std::min(block.end, block.begin + last * lanes);
    start_sums(block, sums);
    sum_tile(block, begin, end, last - first, panel, sums);
    put_tile<T>(block, begin, end, sums);
  }
}

void run_block_f32(const DirectBlock& block) { run_block<float>(block); }
void run_block_f16(const DirectBlock& block) { run_block<Half>(block); }
void run_block_bf16(const DirectBlock& block) { run_block<Bfloat>(block); }

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(run_block_f32);
HWY_EXPORT(run_block_f16);
HWY_EXPORT(run_block_bf16);

void run_direct_block(const DirectBlock& block, DataType out) {
  if (out == DataType::float16) return HWY_DYNAMIC_DISPATCH(run_block_f16)(block);
  if (out == DataType::bfloat16) return HWY_DYNAMIC_DISPATCH(run_block_bf16)(block);
  HWY_DYNAMIC_DISPATCH(run_block_f32)(block);
}

}  // namespace xpuruntime::cpu
#endif
