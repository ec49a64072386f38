#include "backends/cpu/matmul/gemm.h"

#include <algorithm>

#include "backends/cpu/matmul/packed_layout.h"

namespace xpuruntime::cpu {
namespace {

// Small enough for the second cache of any machine we know.
constexpr std::uint64_t l2_bytes = std::uint64_t{1} << 20;

TileTask task_of(std::int64_t m, std::int64_t n, std::int64_t k, const TypedMatrixView& a, const TypedMatrixView& b,
                 std::int64_t c_row) {
  Product product;
  product.shape.m = m;
  product.shape.n = n;
  product.shape.k = k;
  product.shape.a = {a.row, a.column, {}};
  product.shape.b = {b.row, b.column, {}};
  product.shape.c = {c_row, 1, {}};
  product.a = a.dtype;
  product.b = b.dtype;
  const PackedLayout layout = packed_layout(product, l2_bytes);
  TileTask task = layout.task;
  task.rows.data = layout.lanes_are_columns ? a.data : b.data;
  task.lanes.data = layout.lanes_are_columns ? b.data : a.data;
  return task;
}

}  // namespace

std::size_t gemm_scratch_bytes(std::int64_t m, std::int64_t n, std::int64_t k) {
  // Whichever operand is spread over lanes, and however it lies.
  TileTask columns;
  columns.row_count = m;
  columns.lane_count = n;
  columns.k = k;
  columns.out_lane = 1;
  TileTask rows = columns;
  std::swap(rows.row_count, rows.lane_count);
  rows.out_lane = 0;
  choose_blocks(columns, l2_bytes);
  choose_blocks(rows, l2_bytes);
  return static_cast<std::size_t>(std::max(tile_buffer_floats(columns), tile_buffer_floats(rows))) * sizeof(float);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float* c, std::int64_t c_row,
          bool accumulate, void* scratch) {
  gemm(m, n, k, TypedMatrixView{a.data, DataType::float32, a.row, a.column},
       TypedMatrixView{b.data, DataType::float32, b.row, b.column}, c, c_row, accumulate, scratch);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const TypedMatrixView& a, const TypedMatrixView& b, float* c,
          std::int64_t c_row, bool accumulate, void* scratch) {
  TileTask task = task_of(m, n, k, a, b, c_row);
  task.out = c;
  task.accumulate = accumulate;
  task.buffer = static_cast<float*>(scratch);
  run_tiles(task);
}

}  // namespace xpuruntime::cpu
