#include <algorithm>
#include <limits>

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/attention/shape.h"
#include "backends/cpu/attention/softmax.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/matmul/gemm.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t block_rows = 128;  // queries whose whole rows of scores are in memory at a time

/// Where one thread keeps what; all offsets are in bytes. Operands that are f32 already take nothing.
struct Layout {
  std::size_t queries = 0;
  std::size_t keys = 0;
  std::size_t values = 0;
  std::size_t scores = 0;
  std::size_t sums = 0;
  std::size_t gemm = 0;
  std::size_t bytes = 0;
  std::int64_t score_row = 0;
};

std::int64_t rows_of(const AttentionShape& shape) { return std::min(block_rows, shape.queries); }

/// The most that any product of a run needs.
std::int64_t gemm_bytes(const AttentionShape& shape) {
  std::size_t most = 0;
  for (std::int64_t first = 0; first < shape.queries; first += rows_of(shape)) {
    const std::int64_t rows = std::min(rows_of(shape), shape.queries - first);
    const std::int64_t keys = shape.keys_of(first + rows - 1);
    most = std::max({most, gemm_scratch_bytes(rows, keys, shape.depth), gemm_scratch_bytes(rows, shape.width, keys)});
  }
  return static_cast<std::int64_t>(most);
}

Layout layout_of(const AttentionShape& shape) {
  const auto widened = [](DataType dtype, std::int64_t elements) {
    return dtype == DataType::float32 ? 0 : elements * 4;
  };
  const std::int64_t rows = rows_of(shape);
  WorkspaceParts parts;
  Layout layout;
  layout.score_row = (shape.keys + softmax_align - 1) / softmax_align * softmax_align;
  layout.queries = parts.add(widened(shape.q_dtype, rows * shape.depth));
  layout.keys = parts.add(widened(shape.k_dtype, shape.keys * shape.depth));
  layout.values = parts.add(widened(shape.v_dtype, shape.keys * shape.width));
  layout.scores = parts.add(rows * layout.score_row * 4);
  layout.sums = parts.add(rows * shape.width * 4);
  layout.gemm = parts.add(gemm_bytes(shape));
  layout.bytes = parts.size();
  return layout;
}

/// The three steps one after the other, each over whole rows: scores, softmax, sums of values.
class ComposedPlan final : public Plan {
 public:
  explicit ComposedPlan(const Problem& problem)
      : shape_(attention_shape(problem)), threads_(attention_threads(threads_for(problem), shape_)) {
    if (!shape_.empty()) layout_ = layout_of(shape_);
  }

  Status run(const RunArguments& arguments) const override {
    if (shape_.empty()) return {};
    const std::int64_t rows = rows_of(shape_), blocks = (shape_.queries + rows - 1) / rows;
    run_in_slots(shape_.batch * shape_.heads * blocks, 1, threads_, [&](std::int64_t slot, std::int64_t i) {
      std::byte* scratch =
          static_cast<std::byte*>(arguments.workspace) + static_cast<std::size_t>(slot) * layout_.bytes;
      const std::int64_t head = i / blocks;
      block(arguments, scratch, head / shape_.heads, head % shape_.heads, (blocks - 1 - i % blocks) * rows);
    });
    return {};
  }

 private:
  /// The rows as f32: where they lie, or widened into `scratch`.
  static MatrixView rows_as_f32(const Tensor& tensor, const AttentionStrides& strides, std::int64_t offset,
                                std::int64_t rows, std::int64_t columns, void* scratch) {
    const void* data = element_at(tensor.as<const std::byte>(), tensor.dtype(), offset);
    if (tensor.dtype() == DataType::float32) return {static_cast<const float*>(data), strides.row, 1};
    float* const to = static_cast<float*>(scratch);
    for (std::int64_t i = 0; i < rows; ++i) {
      widen_row(element_at(data, tensor.dtype(), i * strides.row), tensor.dtype(), columns, to + i * columns);
    }
    return {to, columns, 1};
  }

  void block(const RunArguments& arguments, std::byte* scratch, std::int64_t b, std::int64_t h,
             std::int64_t first) const {
    const std::int64_t rows = std::min(rows_of(shape_), shape_.queries - first), key_head = h / shape_.group;
    const std::int64_t keys = shape_.keys_of(first + rows - 1);
    float* const scores = reinterpret_cast<float*>(scratch + layout_.scores);
    float* const sums = reinterpret_cast<float*>(scratch + layout_.sums);
    const MatrixView q = rows_as_f32(*arguments.inputs[0], shape_.q, shape_.q.at(b, h, first), rows, shape_.depth,
                                     scratch + layout_.queries);
    const MatrixView k = rows_as_f32(*arguments.inputs[1], shape_.k, shape_.k.at(b, key_head, 0), keys, shape_.depth,
                                     scratch + layout_.keys);
    const MatrixView v = rows_as_f32(*arguments.inputs[2], shape_.v, shape_.v.at(b, key_head, 0), keys, shape_.width,
                                     scratch + layout_.values);
    gemm(rows, keys, shape_.depth, q, {k.data, 1, k.row}, scores, layout_.score_row, false, scratch + layout_.gemm);
    float weights[block_rows];
    for (std::int64_t i = 0; i < rows; i += softmax_rows) {
      softmax(arguments, scores + i * layout_.score_row, b, h, first + i, std::min(softmax_rows, rows - i), keys,
              weights + i);
    }
    gemm(rows, shape_.width, keys, {scores, layout_.score_row, 1}, v, sums, shape_.width, false,
         scratch + layout_.gemm);
    std::byte* const out = arguments.outputs[0]->as<std::byte>();
    const auto size = static_cast<std::int64_t>(size_of(shape_.out_dtype));
    for (std::int64_t i = 0; i < rows; ++i) {
      store_row(sums + i * shape_.width, weights[i], shape_.width, out + shape_.out.at(b, h, first + i) * size,
                shape_.out_dtype);
    }
  }

  void softmax(const RunArguments& arguments, float* scores, std::int64_t b, std::int64_t h, std::int64_t first,
               std::int64_t rows, std::int64_t keys, float* weights) const {
    const std::int64_t columns = (keys + softmax_align - 1) / softmax_align * softmax_align;
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const row = scores + i * layout_.score_row;
      if (shape_.has_mask) {
        const void* mask =
            element_at(arguments.inputs[3]->as<const std::byte>(), shape_.mask_dtype, shape_.mask.at(b, h, first + i));
        mask_scores(row, keys, shape_.scale, {mask, shape_.mask_dtype, shape_.mask.column});
      } else if (shape_.scale < 0) {
        rescale_rows(row, 0, 1, keys, &shape_.scale);
      }
      hide_scores(row, shape_.keys_of(first + i), columns);
    }
    float highest[softmax_rows], rescale[softmax_rows];
    std::fill_n(highest, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(weights, rows, 0.0f);
    softmax_step({.scores = scores,
                  .row = layout_.score_row,
                  .rows = rows,
                  .columns = columns,
                  .factor = shape_.softmax_factor(),
                  .highest = highest,
                  .sums = weights,
                  .rescale = rescale});
  }

  AttentionShape shape_;
  int threads_;
  Layout layout_ = {};
};

}  // namespace

Verdict supports_attention_composed(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = supports_attention_rows(problem); !verdict.supported) return verdict;
  if (problem.inputs[0].shape[3] == 0) return Verdict::no("heads of size 0 have no matrix product");
  return Verdict::yes();
}

std::unique_ptr<const Plan> prepare_attention_composed(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ComposedPlan>(problem);
}

std::uint64_t workspace_attention_composed(const Problem& problem, const DeviceProfile&) {
  const AttentionShape shape = attention_shape(problem);
  if (shape.empty()) return 0;
  return static_cast<std::uint64_t>(attention_threads(threads_for(problem), shape)) * layout_of(shape).bytes;
}

}  // namespace xpuruntime::cpu
