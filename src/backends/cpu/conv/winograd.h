#pragma once

#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::cpu {

/// Tiles are dealt out in multiples of this: whole vectors of any size.
constexpr std::int64_t winograd_unit = 16;
constexpr std::int64_t winograd_most_tiles = 3 * winograd_unit;

/// Weights of 3x3 taps for `channels` inputs, into (outputs + 2)^2 values each, `plane` floats apart.
struct WinogradWeights {
  int outputs = 4;  // along one dim of a tile
  const float* from = nullptr;
  std::int64_t channels = 0;
  float* to = nullptr;
  std::int64_t plane = 0;
};

/// All output channels of some consecutive tiles of one image, tiles being counted in rows of `row` of which the first
/// `out_row` exist.
struct WinogradBlock {
  int outputs = 4;                        // along one dim of a tile
  const float* inputs = nullptr;          // of tile 0
  std::int64_t channel_size = 0;          // floats from one input channel to the next
  const std::int64_t* offsets = nullptr;  // of the values under a tile
  std::int64_t in_channels = 0, out_channels = 0;
  const float* weights = nullptr;             // transformed: [value][output channel][input channel]
  const std::int32_t* row_offsets = nullptr;  // by input channel: where its tiles are among the transformed inputs
  const float* bias = nullptr;                // or null
  std::int64_t begin = 0, end = 0;            // tiles
  std::int64_t room = 0;                      // tiles the scratch has room for: a multiple of winograd_unit
  float* in_scratch = nullptr;                // [value][input channel][room]
  float* out_scratch = nullptr;               // [value][output channel][room]
  std::int64_t row = 0, out_row = 0;
  void* out = nullptr;
  std::int64_t height = 0, width = 0;
};

void run_winograd_weights(const WinogradWeights& weights);
void run_winograd_block(const WinogradBlock& block, DataType out);

}  // namespace xpuruntime::cpu
