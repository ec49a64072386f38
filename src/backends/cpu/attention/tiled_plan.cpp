#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/panels.h"
#include "backends/cpu/attention/tiles.h"

namespace xpuruntime::cpu {

TileSizes tile_sizes(const Problem& problem, const AttentionShape& shape, std::int64_t key_block) {
  constexpr std::int64_t most_rows = 256;
  TileSizes sizes;
  sizes.threads = attention_threads(threads_for(problem), shape);
  sizes.key_block = std::min(key_block, whole_steps(shape.keys, softmax_align));
  sizes.task_rows = std::min(most_rows, whole_steps(std::max<std::int64_t>(shape.queries, 1), tile_rows));
  // Fewer queries a task, down to one tile, while there are too few tasks to keep the threads evenly busy.
  const std::int64_t heads = shape.batch * shape.heads;
  while (sizes.threads > 1 && sizes.task_rows > tile_rows &&
         heads * ((shape.queries + sizes.task_rows - 1) / sizes.task_rows) < 2 * sizes.threads) {
    sizes.task_rows = whole_steps(sizes.task_rows / 2, tile_rows);
  }
  return sizes;
}

namespace {

/// f32 throughout; 16-bit operands are widened while they are packed.
class FloatEngine {
 public:
  static constexpr std::int64_t key_block = 128;

  static std::int64_t query_bytes(const AttentionShape& shape, const TileSizes& sizes) {
    return shape.q_dtype == DataType::float32 ? 0 : sizes.task_rows * shape.depth * 4;
  }
  static std::int64_t key_bytes(const AttentionShape& shape, const TileSizes& sizes) {
    return panel_elements(shape.depth, sizes.key_block) * 4;
  }
  static std::int64_t value_bytes(const AttentionShape& shape, const TileSizes& sizes) {
    return panel_elements(sizes.key_block, shape.width) * 4;
  }

  FloatEngine(const AttentionShape& shape, const TileSizes& sizes, const TileLayout& layout, std::byte* scratch)
      : shape_(shape),
        score_row_(sizes.key_block),
        widened_(reinterpret_cast<float*>(scratch + layout.queries)),
        keys_(reinterpret_cast<float*>(scratch + layout.keys)),
        values_(reinterpret_cast<float*>(scratch + layout.values)) {}

  void take_queries(const void* queries, std::int64_t count) {
    queries_ = static_cast<const float*>(queries);
    query_row_ = shape_.q.row;
    if (shape_.q_dtype == DataType::float32) return;
    for (std::int64_t i = 0; i < count; ++i) {
      widen_row(element_at(queries, shape_.q_dtype, i * shape_.q.row), shape_.q_dtype, shape_.depth,
                widened_ + i * shape_.depth);
    }
    queries_ = widened_;
    query_row_ = shape_.depth;
  }

  void take_keys(const void* keys, const void* values, std::int64_t count) {
    count_ = count;
    pack_panel_columns(keys, shape_.k_dtype, shape_.k.row, shape_.depth, count, keys_);
    pack_panel_rows(values, shape_.v_dtype, shape_.v.row, count, shape_.width, values_);
  }

  void multiply_keys(std::int64_t row, std::int64_t rows, std::int64_t columns, float* scores) const {
    multiply_panels({.a = queries_ + row * query_row_,
                     .a_row = query_row_,
                     .b = keys_,
                     .b_rows = shape_.depth,
                     .c = scores,
                     .c_row = score_row_,
                     .rows = rows,
                     .columns = columns,
                     .depth = shape_.depth});
  }

  static bool softmax(const SoftmaxBlock& block) { return softmax_step(block); }

  void multiply_values(const float* weights, std::int64_t rows, std::int64_t count, float* sums, std::int64_t width,
                       bool accumulate) const {
    multiply_panels({.a = weights,
                     .a_row = score_row_,
                     .b = values_,
                     .b_rows = count_,
                     .c = sums,
                     .c_row = width,
                     .rows = rows,
                     .columns = width,
                     .depth = count,
                     .accumulate = accumulate});
  }

 private:
  const AttentionShape& shape_;
  std::int64_t score_row_;
  float* widened_;
  float* keys_;
  float* values_;
  const float* queries_ = nullptr;
  std::int64_t query_row_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace

Verdict supports_attention_tiled(const Problem& problem, const DeviceProfile&) {
  return supports_attention_rows(problem);
}

std::unique_ptr<const Plan> prepare_attention_tiled(const Problem& problem, const PrepareContext&) {
  return std::make_unique<TiledPlan<FloatEngine>>(problem);
}

std::uint64_t workspace_attention_tiled(const Problem& problem, const DeviceProfile&) {
  return TiledPlan<FloatEngine>::workspace_bytes(problem);
}

}  // namespace xpuruntime::cpu
