#include <algorithm>
#include <limits>

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/shape.h"
#include "backends/cpu/attention/softmax.h"
#include "backends/cpu/attention/stream.h"
#include "backends/cpu/base/thread_pool.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t most_queries = 4;
// Keys in a task. Fixed: the parts of a row are added chunk by chunk whatever the number of threads.
constexpr std::int64_t chunk_keys = 256;

/// The rows of a key head are all queries of all query heads that share it. Each chunk of keys leaves, for each row,
/// its highest score, its sum of weights and its sum of values.
struct Layout {
  std::int64_t keys = 0;  // that any query sees
  std::int64_t chunks = 0;
  std::int64_t padded_chunks = 0;
  std::int64_t rows = 0;  // of a key head
  std::size_t queries = 0;
  std::size_t highest = 0;
  std::size_t weights = 0;
  std::size_t sums = 0;
  std::size_t bytes = 0;
};

Layout layout_of(const AttentionShape& shape) {
  WorkspaceParts parts;
  Layout layout;
  layout.keys = shape.keys_of(shape.queries - 1);
  layout.chunks = (layout.keys + chunk_keys - 1) / chunk_keys;
  layout.padded_chunks = (layout.chunks + softmax_align - 1) / softmax_align * softmax_align;
  layout.rows = shape.group * shape.queries;
  const std::int64_t rows = shape.batch * shape.key_heads * layout.rows;
  layout.queries = parts.add(rows * shape.depth * 4);
  layout.highest = parts.add(rows * layout.padded_chunks * 4);
  layout.weights = parts.add(rows * layout.chunks * 4);
  layout.sums = parts.add(rows * layout.chunks * shape.width * 4);
  layout.bytes = parts.size();
  return layout;
}

/// One run: where the inputs, the output and the parts of the workspace are.
class Pass {
 public:
  Pass(const AttentionShape& shape, const Layout& layout, const RunArguments& arguments, const Sequences& sequences)
      : shape_(shape),
        layout_(layout),
        arguments_(arguments),
        sequences_(sequences),
        queries_(part(layout.queries)),
        highest_(part(layout.highest)),
        weights_(part(layout.weights)),
        sums_(part(layout.sums)) {}

  /// The queries as f32, the rows of a key head one after the other.
  void gather_queries() const {
    for (std::int64_t row = 0; row < shape_.batch * shape_.key_heads * layout_.rows; ++row) {
      const Place place = place_of(row);
      widen_row(input(0, shape_.q_dtype, shape_.q.at(place.b, place.h, place.i)), shape_.q_dtype, shape_.depth,
                queries_ + row * shape_.depth);
    }
  }

  /// `index` counts the chunks of all key heads.
  void chunk(std::int64_t index) const {
    const std::int64_t head = index / layout_.chunks, chunk = index % layout_.chunks;
    for (std::int64_t row = 0; row < layout_.rows; row += stream_rows) {
      rows_of_chunk(head, chunk, head * layout_.rows + row, std::min(stream_rows, layout_.rows - row));
    }
  }

  void combine(std::int64_t row) const {
    float* const sums = sums_ + row * layout_.chunks * shape_.width;
    float weight = weights_[row * layout_.chunks], highest = highest_[row * layout_.padded_chunks];
    if (layout_.chunks > 1) weight = combine_chunks(row, sums, highest);
    const Place place = place_of(row);
    std::byte* const out = arguments_.outputs[0]->as<std::byte>();
    store_row(sums, weight, shape_.width,
              out + shape_.out.at(place.b, place.h, place.i) * static_cast<std::int64_t>(size_of(shape_.out_dtype)),
              shape_.out_dtype);
    store_lse(shape_, arguments_, shape_.lse.at(place.b, place.h, place.i), highest, weight);
  }

 private:
  struct Place {
    std::int64_t b, h, i;
  };

  Place place_of(std::int64_t row) const {
    const std::int64_t head = row / layout_.rows, within = row % layout_.rows;
    return {head / shape_.key_heads, head % shape_.key_heads * shape_.group + within / shape_.queries,
            within % shape_.queries};
  }

  float* part(std::size_t offset) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(arguments_.workspace) + offset);
  }

  const void* input(std::size_t which, DataType dtype, std::int64_t offset) const {
    return element_at(arguments_.inputs[which]->as<const std::byte>(), dtype, offset);
  }

  void rows_of_chunk(std::int64_t head, std::int64_t chunk, std::int64_t row, std::int64_t rows) const {
    const std::int64_t b = head / shape_.key_heads, key_head = head % shape_.key_heads, key = chunk * chunk_keys;
    const std::int64_t count = std::min(chunk_keys, sequences_.keys_of(b, shape_.queries - 1) - key);
    if (count <= 0) return leave_out(chunk, row, rows);
    const StreamedRows keys = streamed(1, shape_.k_dtype, shape_.k, {b, key_head, key}, count, shape_.depth);
    const StreamedRows values = streamed(2, shape_.v_dtype, shape_.v, {b, key_head, key}, count, shape_.width);
    alignas(64) float scores[stream_rows * chunk_keys];
    stream_dots(queries_ + row * shape_.depth, rows, keys, scores, chunk_keys);
    float highest[stream_rows], weights[stream_rows], rescale[stream_rows];
    for (std::int64_t r = 0; r < rows; ++r) mask(place_of(row + r), key, count, scores + r * chunk_keys);
    softmax(scores, rows, count, highest, weights, rescale);
    for (std::int64_t r = 0; r < rows; ++r) {
      highest_[(row + r) * layout_.padded_chunks + chunk] = highest[r];
      weights_[(row + r) * layout_.chunks + chunk] = weights[r];
    }
    stream_sums(scores, chunk_keys, rows, values, sums_ + (row * layout_.chunks + chunk) * shape_.width,
                layout_.chunks * shape_.width);
  }

  /// Keys or values from one on.
  StreamedRows streamed(std::size_t which, DataType dtype, const AttentionStrides& strides, const Place& from,
                        std::int64_t count, std::int64_t width) const {
    const std::int32_t* const pages = sequences_.pages_of(from.b);
    const std::int64_t start = pages == nullptr ? strides.at(from.b, from.h, from.i) : strides.at(0, from.h, 0);
    return {.data = input(which, dtype, start),
            .dtype = dtype,
            .row = strides.row,
            .count = count,
            .width = width,
            .pages = pages,
            .page_step = sequences_.page_step(),
            .page_stride = strides.batch,
            .page_size = shape_.page_size,
            .first = from.i};
  }

  /// The rows of a chunk that no query of the sequence sees.
  void leave_out(std::int64_t chunk, std::int64_t row, std::int64_t rows) const {
    for (std::int64_t r = row; r < row + rows; ++r) {
      highest_[r * layout_.padded_chunks + chunk] = -std::numeric_limits<float>::infinity();
      weights_[r * layout_.chunks + chunk] = 0;
      std::fill_n(sums_ + (r * layout_.chunks + chunk) * shape_.width, shape_.width, 0.0f);
    }
  }

  void mask(const Place& place, std::int64_t key, std::int64_t count, float* scores) const {
    if (shape_.has_mask) {
      const std::int64_t at = shape_.mask.at(place.b, place.h, place.i) + key * shape_.mask.column;
      mask_scores(scores, count, shape_.scale,
                  {input(3, shape_.mask_dtype, at), shape_.mask_dtype, shape_.mask.column});
    } else if (shape_.scale < 0) {
      rescale_rows(scores, 0, 1, count, &shape_.scale);
    }
    const std::int64_t visible = std::clamp<std::int64_t>(sequences_.keys_of(place.b, place.i) - key, 0, count);
    hide_scores(scores, visible, (count + softmax_align - 1) / softmax_align * softmax_align);
  }

  void softmax(float* scores, std::int64_t rows, std::int64_t count, float* highest, float* weights,
               float* rescale) const {
    std::fill_n(highest, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(weights, rows, 0.0f);
    softmax_step({.scores = scores,
                  .row = chunk_keys,
                  .rows = rows,
                  .columns = (count + softmax_align - 1) / softmax_align * softmax_align,
                  .factor = shape_.softmax_factor(),
                  .highest = highest,
                  .sums = weights,
                  .rescale = rescale});
  }

  /// The chunks' highest scores are themselves scores: their softmax weights are what each chunk counts for. The sums
  /// end up in the place of the first chunk's.
  float combine_chunks(std::int64_t row, float* sums, float& highest) const {
    float* const factors = highest_ + row * layout_.padded_chunks;
    hide_scores(factors, layout_.chunks, layout_.padded_chunks);
    float unused = 0, rescale = 0;
    highest = -std::numeric_limits<float>::infinity();
    softmax_step({.scores = factors,
                  .row = layout_.padded_chunks,
                  .rows = 1,
                  .columns = layout_.padded_chunks,
                  .factor = shape_.softmax_factor(),
                  .highest = &highest,
                  .sums = &unused,
                  .rescale = &rescale});
    float weight = 0;
    for (std::int64_t c = 0; c < layout_.chunks; ++c) weight += factors[c] * weights_[row * layout_.chunks + c];
    // A strip of columns is read whole before it is written, so the result may overwrite the first chunk's sums.
    stream_sums(factors, 0, 1, {sums, DataType::float32, shape_.width, layout_.chunks, shape_.width}, sums, 0);
    return weight;
  }

  const AttentionShape& shape_;
  const Layout& layout_;
  const RunArguments& arguments_;
  const Sequences& sequences_;
  float* queries_;
  float* highest_;
  float* weights_;
  float* sums_;
};

class SingleQueryPlan final : public Plan {
 public:
  explicit SingleQueryPlan(const Problem& problem) : shape_(attention_shape(problem)), threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const AttentionShape shape = attention_shape(shape_, arguments);
    const Sequences sequences(shape, arguments);
    if (Status status = sequences.check(); !status.ok() || shape.empty()) return status;
    const Layout layout = layout_of(shape);
    const Pass pass(shape, layout, arguments, sequences);
    const std::int64_t heads = shape.batch * shape.key_heads;
    const int threads = attention_threads(threads_, shape);
    pass.gather_queries();
    parallel_tasks(heads * layout.chunks, threads, [&](std::int64_t i) { pass.chunk(i); });
    // What is left is small; threads are worth it for many chunks only.
    const std::int64_t rows = heads * layout.rows, elements = layout.chunks * shape.width;
    parallel_for(rows, std::max<std::int64_t>(1, (1 << 18) / elements), threads,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) pass.combine(row);
                 });
    return {};
  }

 private:
  AttentionShape shape_;  // but for the keys
  int threads_;
};

}  // namespace

Verdict supports_attention_single_query(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = supports_attention_rows(problem); !verdict.supported) return verdict;
  return is_at_most("queries", problem.inputs[0].shape[2], most_queries);
}

std::unique_ptr<const Plan> prepare_attention_single_query(const Problem& problem, const PrepareContext&) {
  return std::make_unique<SingleQueryPlan>(problem);
}

std::uint64_t workspace_attention_single_query(const Problem& problem, const DeviceProfile&) {
  const AttentionShape shape = attention_shape(problem);
  return shape.empty() ? 0 : layout_of(shape).bytes;
}

}  // namespace xpuruntime::cpu
