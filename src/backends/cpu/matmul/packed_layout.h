#pragma once

#include "backends/cpu/matmul/packed_task.h"
#include "backends/cpu/matmul/product.h"

namespace xpuruntime::cpu {

/// How a product is cut into tasks of tiles. No task is part of a sum, so the cut never shows in the result.
struct PackedLayout {
  Product product = {};
  bool lanes_are_columns = true;  // of the output: b is spread over lanes; else a is
  std::int64_t row_tasks = 1;     // for one batch index
  std::int64_t lane_tasks = 1;
  std::int64_t slots = 1;  // tasks at once
  std::int64_t slot_floats = 0;
  std::int64_t bias_floats = 0;  // of workspace, where the bias is not ready to use
  void (*run)(const TileTask&) = run_tiles;
  TileTask task = {};  // the largest one, without pointers
};

/// Cuts a product into tasks for its threads, at so many multiplications a microsecond. Blocks and buffers are left to
/// the caller.
PackedLayout cut_layout(const Product& product, bool lanes_are_columns, double per_microsecond);
TileTask oriented_task(const Product& product, bool lanes_are_columns);

PackedLayout packed_layout(const Product& product, std::uint64_t l2_bytes);
std::uint64_t packed_workspace_bytes(const PackedLayout& layout);
/// The bias as floats side by side, in the workspace where it is not that already; null where there is none.
const float* ready_bias(const PackedLayout& layout, const RunArguments& arguments);
void run_packed(const PackedLayout& layout, const RunArguments& arguments);

}  // namespace xpuruntime::cpu
