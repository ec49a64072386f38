#pragma once

#include <cstdint>

#include "backends/cpu/base/activation.h"
#include "xpuruntime/core/data_type.h"

// A product cut down to what one thread does. One operand is spread over vector lanes, the other gives the values that
// are broadcast to them; either of a and b may take either part.

namespace xpuruntime::cpu {

// Bounds over all targets, so that buffers can be sized without asking which one runs.
inline constexpr std::int64_t most_tile_rows = 14;
inline constexpr std::int64_t most_tile_lanes = 32;
/// The longest piece of k that is multiplied at once: a tile's rows then stay in the first cache.
inline constexpr std::int64_t most_k_block = 512;
/// Between the rows of a tile, in floats. No power of two: they would fall on each other in the cache.
inline constexpr std::int64_t row_step = most_k_block + 16;
inline constexpr std::int64_t row_buffer_floats = most_tile_rows * row_step;

/// A matrix whose element (i, p) is at data[i * outer + p * inner]; p runs over k.
struct TileOperand {
  const void* data = nullptr;
  DataType dtype = DataType::float32;
  std::int64_t outer = 0;
  std::int64_t inner = 0;
};

/// out[row, lane] = activation(sum over p of rows(row, p) * lanes(lane, p) + bias).
struct TileTask {
  std::int64_t row_count = 0;
  std::int64_t lane_count = 0;
  std::int64_t k = 0;
  TileOperand rows = {};
  TileOperand lanes = {};
  void* out = nullptr;
  DataType out_dtype = DataType::float32;
  std::int64_t out_row = 0;
  std::int64_t out_lane = 0;
  bool accumulate = false;          // adds what `out`, an f32 matrix, holds before
  const float* row_bias = nullptr;  // at most one of the two
  const float* lane_bias = nullptr;
  Activation activation = Activation::none;
  bool pack_lanes = true;  // false: f32 lanes that lie side by side are read where they are
  std::int64_t k_block = most_k_block;
  std::int64_t lane_block = most_tile_lanes;
  float* buffer = nullptr;  // tile_buffer_floats(task) floats, 64-byte aligned
};

/// From one row of kept sums to the next, in floats.
inline std::int64_t lane_block_step(const TileTask& task) {
  const std::int64_t lanes = task.lane_count < task.lane_block ? task.lane_count : task.lane_block;
  return (lanes + most_tile_lanes - 1) / most_tile_lanes * most_tile_lanes;
}

inline std::int64_t packed_lane_floats(const TileTask& task) {
  return (task.pack_lanes ? lane_block_step(task) : most_tile_lanes) * task.k_block;
}

/// Sizes, dtypes and blocks decide.
std::int64_t tile_buffer_floats(const TileTask& task);

/// Picks k_block and lane_block for its sizes and an L2 cache of so many bytes.
void choose_blocks(TileTask& task, std::uint64_t l2_bytes);

void run_tiles(const TileTask& task);

/// Gives a block of sums, rows `step` apart, the task's bias and activation and stores it at (row, lane) of its output.
void finish_sums(const TileTask& task, float* sums, std::int64_t step, std::int64_t row, std::int64_t row_count,
                 std::int64_t lane, std::int64_t lane_count);

/// Writes `count` elements, `stride` apart, as floats.
void widen(const void* from, DataType dtype, std::int64_t stride, std::int64_t count, float* to);

}  // namespace xpuruntime::cpu
