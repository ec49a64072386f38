#include "backends/cpu/elementwise/plan.h"

#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/movement/strided.h"

namespace xpuruntime::cpu {
namespace {

/// The last operand is the output; a unary op has its input twice, and its blocks carry it as `a` alone.
class BlockPlan final : public Plan {
 public:
  BlockPlan(const Problem& problem, RunBlock run_block, std::int64_t grain, const FunctionParameters& parameters)
      : nest_(problem.outputs[0].shape, {&problem.inputs.front(), &problem.inputs.back(), &problem.outputs[0]},
              NestOrder::by_last_operand),
        dtypes_{problem.inputs.front().dtype, problem.inputs.back().dtype, problem.outputs[0].dtype},
        unary_(problem.inputs.size() == 1),
        run_block_(run_block),
        grain_(grain),
        parameters_(parameters),
        threads_(threads_for(problem)) {
    for (std::size_t which = 0; which < 2 && across_ == 0; ++which) across_ = dim_across(which);
    is_one_block_ = nest_.rank() == 2 && nest_.count() > 0 && (threads_ == 1 || lines() < 2 * (grain_ / line));
  }

  Status run(const RunArguments& arguments) const override {
    void* const bases[] = {arguments.inputs.front()->as<void>(), arguments.inputs.back()->as<void>(),
                           arguments.outputs[0]->as<void>()};
    if (across_ != 0) {
      run_tiles(bases);
      return {};
    }
    if (is_one_block_) {  // the divisions below would take longer than a few elements
      run_block(bases, {}, nest_.extent(1), nest_.extent(0));
      return {};
    }
    parallel_for(lines(), grain_ / line, threads_, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin * line, std::min(end * line, nest_.count()),
                       [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
                         run_block(bases, offsets, rows, columns);
                       });
    });
    return {};
  }

 private:
  static constexpr std::int64_t line = 64;
  static constexpr std::int64_t side = 64;  // of a tile

  /// Cuts are at multiples of a line, so that two threads seldom write to the same one.
  std::int64_t lines() const { return (nest_.count() + line - 1) / line; }

  void run_block(void* const* bases, const Nest<3>::Offsets& offsets, std::int64_t rows, std::int64_t columns) const {
    run_block_({rows, columns, operand(bases, offsets, 0), operand(bases, offsets, 1), operand(bases, offsets, 2),
                parameters_});
  }

  bool lies_across(std::size_t which) const {
    return nest_.stride(which, 0) > 1 && nest_.stride(which, across_) == 1 && nest_.extent(across_) > 1;
  }

  /// The dim along which an input lies in line while the output does along dim 0, as in a transposed matrix; 0: none.
  std::size_t dim_across(std::size_t which) const {
    if (nest_.stride(2, 0) != 1 || nest_.stride(which, 0) <= 1 || nest_.count() < side * side) return 0;
    for (std::size_t dim = 1; dim < nest_.rank(); ++dim) {
      if (nest_.stride(which, dim) == 1 && nest_.extent(dim) > 1) return dim;
    }
    return 0;
  }

  /// Inputs that lie across are transposed tile by tile: element by element, each would touch a line of its own.
  void run_tiles(void* const* bases) const {
    const std::int64_t width = nest_.extent(0), height = nest_.extent(across_);
    const std::int64_t wide = (width + side - 1) / side, high = (height + side - 1) / side;
    const std::int64_t matrices = nest_.count() / (width * height), grain = grain_ / (side * side) + 1;
    parallel_for(matrices * wide * high, grain, threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t column = i % wide * side, row = i / wide % high * side;
        run_tile(bases, i / wide / high, row, std::min(side, height - row), column, std::min(side, width - column));
      }
    });
  }

  void run_tile(void* const* bases, std::int64_t matrix, std::int64_t row, std::int64_t rows, std::int64_t column,
                std::int64_t columns) const {
    alignas(64) std::byte turned[2][side * side * 8];
    BlockOperand operands[3];
    for (std::size_t which = 0; which < 3; ++which) {
      std::int64_t offset = row * nest_.stride(which, across_) + column * nest_.stride(which, 0), rest = matrix;
      for (std::size_t dim = 1; dim < nest_.rank(); ++dim) {
        if (dim == across_) continue;
        offset += rest % nest_.extent(dim) * nest_.stride(which, dim);
        rest /= nest_.extent(dim);
      }
      const std::int64_t size = static_cast<std::int64_t>(size_of(dtypes_[which]));
      char* data = static_cast<char*>(bases[which]) + offset * size;
      operands[which] = {data, dtypes_[which], nest_.stride(which, across_), nest_.stride(which, 0)};
      if (which == 2 || !lies_across(which) || (which == 1 && unary_)) continue;
      transpose_panel({columns, rows, nest_.stride(which, 0), side}, size, data, turned[which]);
      operands[which] = {turned[which], dtypes_[which], side, 1};
    }
    run_block_({rows, columns, operands[0], operands[1], operands[2], parameters_});
  }

  BlockOperand operand(void* const* bases, const Nest<3>::Offsets& offsets, std::size_t which) const {
    const std::int64_t bytes = offsets[which] * static_cast<std::int64_t>(size_of(dtypes_[which]));
    return {static_cast<char*>(bases[which]) + bytes, dtypes_[which], nest_.stride(which, 1), nest_.stride(which, 0)};
  }

  Nest<3> nest_;
  DataType dtypes_[3];
  bool unary_;
  std::size_t across_ = 0;     // 0: no input lies across
  bool is_one_block_ = false;  // on one thread
  RunBlock run_block_;
  std::int64_t grain_;
  FunctionParameters parameters_;
  int threads_;
};

}  // namespace

std::unique_ptr<const Plan> make_block_plan(const Problem& problem, RunBlock run_block, std::int64_t grain,
                                            const FunctionParameters& parameters) {
  return std::make_unique<BlockPlan>(problem, run_block, grain, parameters);
}

}  // namespace xpuruntime::cpu
