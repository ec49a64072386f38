#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/base/block.h"
#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/movement/indices.h"
#include "backends/cpu/movement/kernels.h"
#include "backends/cpu/movement/strided.h"
#include "core/views.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

class CopyPlan final : public Plan {
 public:
  explicit CopyPlan(const Problem& problem)
      : view_(source_view(problem)), copy_(view_.spec, problem.outputs[0]), threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    copy_.run(element_at(arguments.inputs[0]->as<const std::byte>(), view_), arguments.outputs[0]->as<void>(),
              threads_);
    return {};
  }

 private:
  View view_;
  StridedCopy copy_;
  int threads_;
};

class ConcatPlan final : public Plan {
 public:
  explicit ConcatPlan(const Problem& problem) : threads_(threads_for(problem)) {
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      const View target = concat_target(problem, i);
      parts_.push_back({target, StridedCopy(problem.inputs[i], target.spec)});
    }
  }

  Status run(const RunArguments& arguments) const override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].copy.run(arguments.inputs[i]->as<void>(),
                         element_at(arguments.outputs[0]->as<std::byte>(), parts_[i].target), threads_);
    }
    return {};
  }

 private:
  struct Part {
    View target;
    StridedCopy copy;
  };
  std::vector<Part> parts_;
  int threads_;
};

/// Copies or casts whole rows of the table.
class EmbeddingPlan final : public Plan {
 public:
  explicit EmbeddingPlan(const Problem& problem)
      : indices_(problem.inputs[0]),
        table_(problem.inputs[1]),
        to_(problem.outputs[0].dtype),
        cast_(to_ == table_.dtype ? nullptr : find_cast(table_.dtype, to_)),
        load_(integer_loader_of(problem.inputs[0].dtype)),
        row_bytes_(table_.shape[1] * static_cast<std::int64_t>(size_of(to_))),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const void* indices = arguments.inputs[0]->as<void>();
    Status status = check_indices(indices_, indices, table_.shape[0]);
    if (!status.ok() || row_bytes_ == 0) return status;
    const auto* table = arguments.inputs[1]->as<const char>();
    auto* out = arguments.outputs[0]->as<char>();
    const std::int64_t stride = table_.strides[0] * static_cast<std::int64_t>(size_of(table_.dtype));
    parallel_for(element_count(indices_), grain_bytes / row_bytes_ + 1, threads_,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     take_row(table + load_(indices, i) * stride, out + i * row_bytes_);
                   }
                 });
    return status;
  }

 private:
  static constexpr std::int64_t grain_bytes = 65536;

  void take_row(const char* from, char* to) const {
    const std::int64_t step = table_.shape[1] > 1 ? table_.strides[1] : 1;
    if (cast_ == nullptr && step == 1) {
      std::memcpy(to, from, static_cast<std::size_t>(row_bytes_));
      return;
    }
    if (cast_ == nullptr) return gather_row(from, step, to);
    cast_({.rows = 1,
           .columns = table_.shape[1],
           .a = {.data = const_cast<char*>(from), .dtype = table_.dtype},
           .out = {.data = to, .dtype = to_}});
  }

  /// Each element from a line of its own, most likely: they are asked for ahead.
  void gather_row(const char* from, std::int64_t step, char* to) const {
    constexpr std::int64_t ahead = 32;
    const auto size = static_cast<std::int64_t>(size_of(to_));
    const std::int64_t count = table_.shape[1], bytes = step * size;
    with_size(size, [&](auto element) {
      for (std::int64_t i = 0; i < count; ++i) {
        __builtin_prefetch(from + std::min(i + ahead, count - 1) * bytes);
        std::memcpy(to + i * size, from + i * bytes, sizeof element);
      }
    });
  }

  TensorSpec indices_;
  TensorSpec table_;
  DataType to_;
  RunBlock cast_;  // null: the same dtype
  LoadInteger load_;
  std::int64_t row_bytes_;  // of the output
  int threads_;
};

}  // namespace

// Of one dtype, the bytes can be moved as they are, at any address.
Verdict supports_copy_bytes(const Problem& problem, const DeviceProfile&) { return has_one_dtype(problem); }

std::unique_ptr<const Plan> prepare_copy_bytes(const Problem& problem, const PrepareContext&) {
  return std::make_unique<CopyPlan>(problem);
}

std::unique_ptr<const Plan> prepare_concat_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ConcatPlan>(problem);
}

Verdict supports_embedding_rows(const Problem& problem, const DeviceProfile&) {
  const bool casts = find_cast(problem.inputs[1].dtype, problem.outputs[0].dtype) != nullptr;
  if (const Verdict verdict = has_one_dtype(problem, 1); !casts && !verdict.supported) return verdict;
  if (const Verdict indices = is_contiguous("input 0", problem.inputs[0]); !indices.supported) return indices;
  if (const Verdict out = is_contiguous("output 0", problem.outputs[0]); !out.supported) return out;
  return casts && problem.inputs[1].dtype != problem.outputs[0].dtype
             ? has_contiguous_rows("input 1", problem.inputs[1])
             : Verdict::yes();
}

std::unique_ptr<const Plan> prepare_embedding_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<EmbeddingPlan>(problem);
}

}  // namespace xpuruntime::cpu
