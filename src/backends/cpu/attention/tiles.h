#pragma once

#include <algorithm>
#include <limits>

#include "backends/cpu/attention/shape.h"
#include "backends/cpu/attention/softmax.h"
#include "backends/cpu/base/thread_pool.h"

// Attention in tiles: blocks of keys pass by a set of queries, whose sums are rescaled whenever a higher score turns
// up. The scores never leave the first cache. An Engine packs the operands and multiplies them.

namespace xpuruntime::cpu {

inline constexpr std::int64_t tile_rows = softmax_rows;  // queries whose scores are computed at a time

constexpr std::int64_t whole_steps(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

/// How a problem is cut. A query's result depends on key_block only, so task_rows may follow the thread count.
struct TileSizes {
  int threads = 1;
  std::int64_t task_rows = 0;  // queries that share one packing of the keys
  std::int64_t key_block = 0;  // keys packed at a time
};

TileSizes tile_sizes(const Problem& problem, const AttentionShape& shape, std::int64_t key_block);

/// Where one thread keeps what; all offsets are in bytes.
struct TileLayout {
  std::size_t queries = 0;
  std::size_t keys = 0;
  std::size_t values = 0;
  std::size_t scores = 0;
  std::size_t sums = 0;
  std::size_t highest = 0;
  std::size_t weights = 0;
  std::size_t rescale = 0;
  std::size_t bytes = 0;
};

/// Engine::operand_sizes says what the operands take; sums have rows of Engine::padded(width) floats.
template <class Engine>
TileLayout tile_layout(const AttentionShape& shape, const TileSizes& sizes) {
  WorkspaceParts parts;
  TileLayout layout;
  layout.queries = parts.add(Engine::query_bytes(shape, sizes));
  layout.keys = parts.add(Engine::key_bytes(shape, sizes));
  layout.values = parts.add(Engine::value_bytes(shape, sizes));
  layout.scores = parts.add(tile_rows * sizes.key_block * 4);
  layout.sums = parts.add(sizes.task_rows * whole_steps(shape.width, softmax_align) * 4);
  layout.highest = parts.add(sizes.task_rows * 4);
  layout.weights = parts.add(sizes.task_rows * 4);
  layout.rescale = parts.add(tile_rows * 4);
  layout.bytes = parts.size();
  return layout;
}

/// One head and up to task_rows of its queries.
struct QueryTask {
  std::int64_t b = 0;
  std::int64_t h = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

template <class Engine>
class TileWorker {
 public:
  TileWorker(const AttentionShape& shape, const TileSizes& sizes, const TileLayout& layout,
             const RunArguments& arguments, const Sequences& sequences, std::byte* scratch)
      : shape_(shape),
        sizes_(sizes),
        arguments_(arguments),
        sequences_(sequences),
        scores_(reinterpret_cast<float*>(scratch + layout.scores)),
        sums_(reinterpret_cast<float*>(scratch + layout.sums)),
        highest_(reinterpret_cast<float*>(scratch + layout.highest)),
        weights_(reinterpret_cast<float*>(scratch + layout.weights)),
        rescale_(reinterpret_cast<float*>(scratch + layout.rescale)),
        engine_(shape, sizes, layout, scratch) {}

  void run(const QueryTask& task) {
    const std::int64_t key_head = task.h / shape_.group;
    engine_.take_queries(input(0, shape_.q_dtype, shape_.q.at(task.b, task.h, task.first)), task.count);
    std::fill_n(highest_, task.count, -std::numeric_limits<float>::infinity());
    std::fill_n(weights_, task.count, 0.0f);
    const std::int64_t keys = sequences_.keys_of(task.b, task.first + task.count - 1);
    for (std::int64_t key = 0; key < keys; key += sizes_.key_block) {
      const std::int64_t count = std::min(sizes_.key_block, keys - key);
      engine_.take_keys(input(1, shape_.k_dtype, shape_.k.at(task.b, key_head, key)),
                        input(2, shape_.v_dtype, shape_.v.at(task.b, key_head, key)), count);
      for (std::int64_t row = 0; row < task.count; row += tile_rows) tile(task, row, key, count);
    }
    finish(task);
  }

 private:
  const void* input(std::size_t which, DataType dtype, std::int64_t offset) const {
    return element_at(arguments_.inputs[which]->as<const std::byte>(), dtype, offset);
  }

  void tile(const QueryTask& task, std::int64_t row, std::int64_t key, std::int64_t count) {
    const std::int64_t rows = std::min(tile_rows, task.count - row);
    count = std::min(count, sequences_.keys_of(task.b, task.first + row + rows - 1) - key);
    if (count <= 0) return;  // all of it is above the diagonal
    const std::int64_t columns = whole_steps(count, softmax_align);
    engine_.multiply_keys(row, rows, columns, scores_);
    mask(task, row, rows, key, count, columns);
    const SoftmaxBlock block = {.scores = scores_,
                                .row = sizes_.key_block,
                                .rows = rows,
                                .columns = columns,
                                .factor = shape_.softmax_factor(),
                                .highest = highest_ + row,
                                .sums = weights_ + row,
                                .rescale = rescale_};
    const bool changed = Engine::softmax(block);
    const std::int64_t width = whole_steps(shape_.width, softmax_align);
    float* const sums = sums_ + row * width;
    if (key != 0 && changed) rescale_rows(sums, width, rows, width, rescale_);
    engine_.multiply_values(scores_, rows, count, sums, width, key != 0);
  }

  void mask(const QueryTask& task, std::int64_t row, std::int64_t rows, std::int64_t key, std::int64_t count,
            std::int64_t columns) const {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t query = task.first + row + i;
      float* const scores = scores_ + i * sizes_.key_block;
      if (shape_.has_mask) {
        const std::int64_t at = shape_.mask.at(task.b, task.h, query) + key * shape_.mask.column;
        mask_scores(scores, count, shape_.scale,
                    {input(3, shape_.mask_dtype, at), shape_.mask_dtype, shape_.mask.column});
      } else if (shape_.scale < 0) {
        rescale_rows(scores, 0, 1, count, &shape_.scale);
      }
      const std::int64_t visible = std::clamp<std::int64_t>(sequences_.keys_of(task.b, query) - key, 0, count);
      hide_scores(scores, visible, columns);
    }
  }

  void finish(const QueryTask& task) const {
    std::byte* const out = arguments_.outputs[0]->template as<std::byte>();
    const std::int64_t size = static_cast<std::int64_t>(size_of(shape_.out_dtype));
    for (std::int64_t i = 0; i < task.count; ++i) {
      store_row(sums_ + i * whole_steps(shape_.width, softmax_align), weights_[i], shape_.width,
                out + shape_.out.at(task.b, task.h, task.first + i) * size, shape_.out_dtype);
      store_lse(shape_, arguments_, shape_.lse.at(task.b, task.h, task.first + i), highest_[i], weights_[i]);
    }
  }

  const AttentionShape& shape_;
  const TileSizes& sizes_;
  const RunArguments& arguments_;
  const Sequences& sequences_;
  float* scores_;
  float* sums_;
  float* highest_;
  float* weights_;
  float* rescale_;
  Engine engine_;
};

template <class Engine>
class TiledPlan final : public Plan {
 public:
  explicit TiledPlan(const Problem& problem)
      : shape_(attention_shape(problem)),
        sizes_(tile_sizes(problem, shape_, Engine::key_block)),
        layout_(tile_layout<Engine>(shape_, sizes_)) {}

  static std::uint64_t workspace_bytes(const Problem& problem) {
    const AttentionShape shape = attention_shape(problem);
    if (shape.empty()) return 0;
    const TileSizes sizes = tile_sizes(problem, shape, Engine::key_block);
    return static_cast<std::uint64_t>(sizes.threads) * tile_layout<Engine>(shape, sizes).bytes;
  }

  Status run(const RunArguments& arguments) const override {
    const Sequences sequences(shape_, arguments);
    if (Status status = sequences.check(); !status.ok() || shape_.empty()) return status;
    const std::int64_t blocks = (shape_.queries + sizes_.task_rows - 1) / sizes_.task_rows;
    run_in_slots(shape_.batch * shape_.heads * blocks, 1, sizes_.threads, [&](std::int64_t slot, std::int64_t i) {
      // The last queries of a head first: with a causal mask they are the longest tasks.
      const std::int64_t head = i / blocks, first = (blocks - 1 - i % blocks) * sizes_.task_rows;
      std::byte* const scratch =
          static_cast<std::byte*>(arguments.workspace) + static_cast<std::size_t>(slot) * layout_.bytes;
      TileWorker<Engine> worker(shape_, sizes_, layout_, arguments, sequences, scratch);
      worker.run({head / shape_.heads, head % shape_.heads, first, std::min(sizes_.task_rows, shape_.queries - first)});
    });
    return {};
  }

 private:
  AttentionShape shape_;
  TileSizes sizes_;
  TileLayout layout_;
};

}  // namespace xpuruntime::cpu
