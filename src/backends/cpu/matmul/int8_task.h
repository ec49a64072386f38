#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/matmul/packed_task.h"
#include "xpuruntime/device/profile.h"

// Products of 8-bit integers, summed in 32 bits. As in packed_task.h, one operand is spread over vector lanes and the
// other is broadcast; several elements along k share each 32-bit lane.

namespace xpuruntime::cpu {

/// Lanes that are packed together; a multiple of every target's panel.
inline constexpr std::int64_t int8_lane_group = 192;
/// Lanes that a buffer has room for.
inline std::int64_t group_lanes(std::int64_t lanes) {
  return (std::min(lanes, int8_lane_group) + most_tile_lanes - 1) / most_tile_lanes * most_tile_lanes;
}

/// A matrix whose element (i, p) is at data[i * outer + p * inner]; p runs over k.
struct Int8Operand {
  const std::uint8_t* data = nullptr;
  bool is_signed = true;
  std::int64_t outer = 0;
  std::int64_t inner = 0;
};

struct Int8Task {
  std::int64_t row_count = 0;
  std::int64_t lane_count = 0;
  std::int64_t k = 0;
  Int8Operand rows = {};
  Int8Operand lanes = {};
  std::int32_t* out = nullptr;
  std::int64_t out_row = 0;
  std::int64_t out_lane = 0;
  const std::int32_t* row_bias = nullptr;  // at most one of the two
  const std::int32_t* lane_bias = nullptr;
  bool relu = false;
  bool quads = false;              // the CPU adds four products to a lane at once (VNNI, dot product)
  std::int32_t* buffer = nullptr;  // int8_buffer_words, 64-byte aligned
};

/// 32-bit words of scratch memory for so many rows and lanes.
std::int64_t int8_buffer_words(std::int64_t rows, std::int64_t lanes);

void run_int8(const Int8Task& task);

/// For Int8Task::quads.
bool has_int8_quads(const DeviceProfile& profile);

}  // namespace xpuruntime::cpu
