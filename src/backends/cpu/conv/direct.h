#pragma once

#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::cpu {

/// Positions are dealt out in multiples of this: three vectors of 16, or whole vectors of any smaller size.
constexpr std::int64_t direct_tile = 48;
constexpr std::int64_t direct_channels = 64;

/// How many rows of inputs a panel holds: with the sums it stays in the first cache.
constexpr std::int64_t panel_depth = 96;

/// Where a pointwise convolution finds its inputs: in the tensor itself, a channel a row.
struct PanelSource {
  DataType dtype = {};
  const void* first = nullptr;  // channel 0 at position 0
  const void* end = nullptr;    // of the whole tensor, up to which may be read
  std::int64_t channel = 0;     // elements from one channel to the next
};

/// Some output channels at some consecutive positions, positions being counted in rows of `row` of which the first
/// `out_row` exist in the output. The inputs are either in a copy, reached by offsets, or in the tensor.
struct DirectBlock {
  const float* weights = nullptr;  // of the first channel
  const float* bias = nullptr;     // of the first channel, or null
  const float* inputs = nullptr;   // of position 0 in the copy; null: there is none, `panel` says where they are
  PanelSource panel = {};
  const std::int32_t* offsets = nullptr;  // by k
  std::int64_t depth = 0;                 // how many k there are
  std::int64_t depth_step = 0;            // how many of them to take at a time; at most panel_depth without a copy
  std::int64_t channels = 0;              // at most direct_channels
  std::int64_t begin = 0, end = 0;        // positions
  std::int64_t row = 0, out_row = 0;
  void* out = nullptr;  // of the first channel at position 0
  std::int64_t out_channel = 0;
};

void run_direct_block(const DirectBlock& block, DataType out);

}  // namespace xpuruntime::cpu
