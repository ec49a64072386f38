#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/tiles.h"
#include "backends/cpu/base/amx.h"

namespace xpuruntime::cpu {
namespace {

/// bf16 in, f32 sums, on the tile registers. The weights between the two products are rounded to bf16.
class AmxEngine {
 public:
  static constexpr std::int64_t key_block = 256;

  static std::int64_t query_bytes(const AttentionShape& shape, const TileSizes& sizes) {
    return sizes.task_rows * depth_of(shape) * 2;
  }
  static std::int64_t key_bytes(const AttentionShape& shape, const TileSizes& sizes) {
    return amx_packed_elements(shape.depth, sizes.key_block) * 2;
  }
  static std::int64_t value_bytes(const AttentionShape& shape, const TileSizes& sizes) {
    return amx_packed_elements(sizes.key_block, shape.width) * 2;
  }

  AmxEngine(const AttentionShape& shape, const TileSizes& sizes, const TileLayout& layout, std::byte* scratch)
      : shape_(shape),
        score_row_(sizes.key_block),
        queries_(reinterpret_cast<Bfloat*>(scratch + layout.queries)),
        keys_(reinterpret_cast<Bfloat*>(scratch + layout.keys)),
        values_(reinterpret_cast<Bfloat*>(scratch + layout.values)) {}

  void take_queries(const void* queries, std::int64_t count) {
    amx_pad(static_cast<const Bfloat*>(queries), shape_.q.row, count, shape_.depth, queries_);
  }

  void take_keys(const void* keys, const void* values, std::int64_t count) {
    count_ = count;
    amx_pack_columns(static_cast<const Bfloat*>(keys), shape_.k.row, shape_.depth, count, keys_);
    amx_pack_rows(static_cast<const Bfloat*>(values), shape_.v.row, count, shape_.width, values_, AmxPairs::halves);
  }

  void multiply_keys(std::int64_t row, std::int64_t rows, std::int64_t columns, float* scores) const {
    const std::int64_t depth = depth_of(shape_);
    amx_multiply({.a = queries_ + row * depth,
                  .a_row = depth,
                  .b = keys_,
                  .b_step = depth * amx_block,
                  .c = scores,
                  .c_row = score_row_,
                  .row_tiles = rows > amx_block / 2 ? 2 : 1,
                  .depth_blocks = depth / amx_block,
                  .column_blocks = columns / amx_block});
  }

  static bool softmax(const SoftmaxBlock& block) { return softmax_step_bf16(block); }

  void multiply_values(const float* weights, std::int64_t rows, std::int64_t count, float* sums, std::int64_t width,
                       bool accumulate) const {
    amx_multiply({.a = reinterpret_cast<const Bfloat*>(weights),
                  .a_row = 2 * score_row_,
                  .b = values_,
                  .b_step = amx_blocks(count_) * amx_block_elements,
                  .c = sums,
                  .c_row = width,
                  .row_tiles = rows > amx_block / 2 ? 2 : 1,
                  .depth_blocks = amx_blocks(count),
                  .column_blocks = width / amx_block,
                  .accumulate = accumulate});
  }

 private:
  static std::int64_t depth_of(const AttentionShape& shape) { return amx_blocks(shape.depth) * amx_block; }

  AmxTiles tiles_;
  const AttentionShape& shape_;
  std::int64_t score_row_;
  Bfloat* queries_;
  Bfloat* keys_;
  Bfloat* values_;
  std::int64_t count_ = 0;
};

}  // namespace

Verdict supports_attention_tiled_amx(const Problem& problem, const DeviceProfile& profile) {
  if (const Verdict verdict = supports_attention_rows(problem); !verdict.supported) return verdict;
  return has_amx(profile);
}

std::unique_ptr<const Plan> prepare_attention_tiled_amx(const Problem& problem, const PrepareContext&) {
  if (!amx_allowed()) {
    fail(ErrorCode::not_supported, "prepare",
         "the system does not let this process use AMX tiles; use another kernel, or allow them (arch_prctl)");
  }
  return std::make_unique<TiledPlan<AmxEngine>>(problem);
}

std::uint64_t workspace_attention_tiled_amx(const Problem& problem, const DeviceProfile&) {
  return TiledPlan<AmxEngine>::workspace_bytes(problem);
}

}  // namespace xpuruntime::cpu
