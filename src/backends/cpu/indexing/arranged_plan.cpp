#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/indexing/kernels.h"
#include "backends/cpu/indexing/places.h"
#include "backends/cpu/indexing/sources.h"
#include "backends/cpu/movement/strided.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

/// For each element of a dim, where it comes from; -1: filled.
std::vector<std::int64_t> table_of(const std::vector<Run>& runs) {
  std::vector<std::int64_t> table;
  for (const Run& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) table.push_back(run.from < 0 ? -1 : run.from + i * run.step);
  }
  return table;
}

bool is_whole(const std::vector<Run>& runs, std::int64_t extent) {
  return runs.size() == 1 && runs[0].from == 0 && runs[0].count == extent && (runs[0].step == 1 || extent == 1);
}

Filler filler_of(const Problem& problem, const RunArguments& arguments) {
  const DataType dtype = problem.outputs[0].dtype;
  if (problem.inputs.size() < 2) return Filler(dtype);
  return {problem.inputs[1], arguments.inputs[1]->as<void>(), dtype};
}

/// Rows of the output: each comes from one row of the input, in runs, or is filled.
class ArrangedPlan final : public Plan {
 public:
  explicit ArrangedPlan(const Problem& problem)
      : problem_(problem),
        size_(static_cast<std::int64_t>(size_of(problem.outputs[0].dtype))),
        threads_(threads_for(problem)) {
    const Dims& shape = problem.outputs[0].shape;
    const Dims strides = source_strides(problem);
    const std::size_t added = shape.size() - problem.inputs[0].shape.size();
    std::size_t rank = shape.size();
    // The last dims that stay as they are: what is moved is one block of them.
    for (; rank > 1 && rank > added; --rank) {
      const std::int64_t extent = problem.inputs[0].shape[rank - 1 - added];
      if (shape[rank - 1] != extent || !is_whole(runs_of(problem, rank - 1), extent)) break;
      block_ *= extent;
    }
    if (rank == 0) {
      runs_ = {{0, 1, 0, 1}};
      return;
    }
    runs_ = runs_of(problem, rank - 1);
    columns_ = shape[rank - 1];
    column_stride_ = strides[rank - 1];
    bool is_in_line = true;  // the rows are those of the input, one after the other
    for (std::size_t d = 0; d + 1 < rank; ++d) {
      rows_ *= shape[d];
      is_in_line = is_in_line && d >= added && is_whole(runs_of(problem, d), problem.inputs[0].shape[d - added]);
    }
    is_narrow_ = is_in_line && rank > 1 && block_ == 1 && columns_ <= most_narrow;
    if (is_narrow_) {
      in_columns_ = problem.inputs[0].shape[rank - 1 - added];
      columns_from_ = table_of(runs_);
      return;
    }
    for (std::size_t d = 0; d + 1 < rank; ++d) outer_.push_back({table_of(runs_of(problem, d)), strides[d]});
  }

  Status run(const RunArguments& arguments) const override {
    const auto* in = arguments.inputs[0]->as<const std::byte>();
    auto* out = arguments.outputs[0]->as<std::byte>();
    const Filler filler = filler_of(problem_, arguments);
    const std::int64_t row_bytes = columns_ * block_ * size_;
    if (row_bytes == 0) return {};
    parallel_for(rows_, grain_bytes / row_bytes + 1, threads_, [&](std::int64_t begin, std::int64_t end) {
      if (is_narrow_) return write_narrow(filler, in, out, begin, end);
      for (std::int64_t row = begin; row < end; ++row) {
        const auto offset = offset_of(row);
        std::byte* to = out + row * row_bytes;
        if (!offset) {
          filler.fill(to, columns_ * block_);
        } else {
          write_row(filler, in + *offset * size_, to);
        }
      }
    });
    return {};
  }

 private:
  static constexpr std::int64_t grain_bytes = 65536;
  static constexpr std::int64_t most_narrow = 16;  // elements of a row that cost less than finding it

  struct Outer {
    std::vector<std::int64_t> table;
    std::int64_t stride;
  };

  /// In the input; none where the row is filled.
  std::optional<std::int64_t> offset_of(std::int64_t row) const {
    std::int64_t offset = 0;
    for (auto dim = outer_.rbegin(); dim != outer_.rend(); ++dim) {
      const auto extent = static_cast<std::int64_t>(dim->table.size());
      const std::int64_t from = dim->table[static_cast<std::size_t>(row % extent)];
      if (from < 0) return {};
      offset += from * dim->stride;
      row /= extent;
    }
    return offset;
  }

  /// Column by column, of so many rows as the first cache holds.
  void write_narrow(const Filler& filler, const std::byte* in, std::byte* out, std::int64_t begin,
                    std::int64_t end) const {
    constexpr std::int64_t most_rows = 512;
    with_size(size_, [&](auto filled) {
      filler.fill(reinterpret_cast<std::byte*>(&filled), 1);
      constexpr std::int64_t size = sizeof filled;
      for (std::int64_t row = begin; row < end; row += most_rows) {
        const std::int64_t count = std::min(most_rows, end - row);
        for (std::int64_t column = 0; column < columns_; ++column) {
          const std::int64_t place = columns_from_[static_cast<std::size_t>(column)];
          const std::byte* from = in + (row * in_columns_ + std::max<std::int64_t>(place, 0)) * size;
          std::byte* to = out + (row * columns_ + column) * size;
          for (std::int64_t i = 0; i < count; ++i, to += columns_ * size) {
            std::memcpy(to, place < 0 ? reinterpret_cast<const std::byte*>(&filled) : from + i * in_columns_ * size,
                        sizeof filled);
          }
        }
      }
    });
  }

  void write_row(const Filler& filler, const std::byte* in, std::byte* out) const {
    const std::int64_t block_bytes = block_ * size_;
    for (const Run& run : runs_) {
      std::byte* to = out + run.begin * block_bytes;
      if (run.from < 0) {
        filler.fill(to, run.count * block_);
        continue;
      }
      const std::byte* from = in + run.from * column_stride_ * size_;
      const std::int64_t step = run.step * column_stride_;
      if (step == block_ || run.count == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(run.count * block_bytes));
      } else if (block_ == 1) {
        with_size(size_, [&](auto element) {
          for (std::int64_t i = 0; i < run.count; ++i) {
            std::memcpy(to + i * size_, from + i * step * size_, sizeof element);
          }
        });
      } else {
        for (std::int64_t i = 0; i < run.count; ++i) {
          std::memcpy(to + i * block_bytes, from + i * step * size_, static_cast<std::size_t>(block_bytes));
        }
      }
    }
  }

  Problem problem_;
  std::int64_t size_;         // of an element, in bytes
  std::int64_t block_ = 1;    // elements that stay together
  std::int64_t columns_ = 1;  // blocks of a row
  std::int64_t column_stride_ = 1;
  std::int64_t rows_ = 1;
  std::vector<Run> runs_;  // of a row
  std::vector<Outer> outer_;
  bool is_narrow_ = false;
  std::int64_t in_columns_ = 1;
  std::vector<std::int64_t> columns_from_ = {};  // of a narrow row; -1: filled
  int threads_;
};

/// Element by element.
Status run_arranged(const Problem& problem, const RunArguments& arguments) {
  const TensorSpec &from = problem.inputs[0], &to = problem.outputs[0];
  const auto* in = arguments.inputs[0]->as<const std::byte>();
  auto* out = arguments.outputs[0]->as<std::byte>();
  const Filler filler = filler_of(problem, arguments);
  const Dims strides = source_strides(problem);
  std::vector<std::vector<std::int64_t>> tables;
  if (element_count(to) == 0) return {};
  for (std::size_t d = 0; d < to.shape.size(); ++d) tables.push_back(table_of(runs_of(problem, d)));
  TensorSpec one_in = from, one_out = to;
  one_in.shape = one_in.strides = one_out.shape = one_out.strides = {};
  const auto in_size = static_cast<std::int64_t>(size_of(from.dtype)),
             size = static_cast<std::int64_t>(size_of(to.dtype));
  const Dims counts = contiguous_strides(to.shape);
  Walk<1> walk(to.shape, to);
  for (std::int64_t position = 0; walk.more(); walk.next(), ++position) {
    std::int64_t offset = 0;
    bool filled = false;
    for (std::size_t d = 0; d < tables.size(); ++d) {
      const std::int64_t place = tables[d][static_cast<std::size_t>(position / counts[d] % to.shape[d])];
      filled = filled || place < 0;
      offset += place * strides[d];
    }
    std::byte* target = out + walk.offset(0) * size;
    if (filled) {
      filler.fill(target, 1);
    } else {
      convert_elements(one_in, in + offset * in_size, one_out, target);
    }
  }
  return {};
}

}  // namespace

Verdict supports_arranged_rows(const Problem& problem, const DeviceProfile&) {
  constexpr std::int64_t most = 1 << 24;  // of what a plan notes for a dim
  const Dims &from = problem.inputs[0].shape, &to = problem.outputs[0].shape;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const std::size_t added = to.size() - from.size();
    const std::int64_t extent = d < added ? 1 : std::max<std::int64_t>(from[d - added], 1);
    if ((d + 1 < to.size() ? to[d] : to[d] / extent) <= most) continue;
    return Verdict::no("dim " + std::to_string(d) + " of output 0 has " + std::to_string(to[d]) +
                       " elements, and this kernel takes a dim of up to 16777216, or the last one that often");
  }
  const Verdict same = is_same_dtype("input 0", problem.inputs[0].dtype, "the output's", problem.outputs[0].dtype);
  return same.supported ? is_contiguous(problem) : same;
}

std::unique_ptr<const Plan> prepare_arranged_rows(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ArrangedPlan>(problem);
}

std::unique_ptr<const Plan> prepare_arranged_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_arranged);
}

}  // namespace xpuruntime::cpu
