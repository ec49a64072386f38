#include "backends/cpu/elementwise/plans.h"

#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {
namespace {

/// The last operand is the output; a unary op has its input twice, and its blocks carry it as `a` alone.
class BlockPlan final : public Plan {
 public:
  BlockPlan(const Problem& problem, RunBlock run_block, std::int64_t grain)
      : nest_(problem.outputs[0].shape, {&problem.inputs.front(), &problem.inputs.back(), &problem.outputs[0]},
              NestOrder::by_last_operand),
        dtypes_{problem.inputs.front().dtype, problem.inputs.back().dtype, problem.outputs[0].dtype},
        run_block_(run_block),
        grain_(grain),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    void* const bases[] = {arguments.inputs.front()->as<void>(), arguments.inputs.back()->as<void>(),
                           arguments.outputs[0]->as<void>()};
    // Cuts at multiples of a line, so that two threads seldom write to the same one.
    const std::int64_t lines = (nest_.count() + line - 1) / line;
    parallel_for(lines, grain_ / line, threads_, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin * line, std::min(end * line, nest_.count()),
                       [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
                         run_block_({rows, columns, operand(bases, offsets, 0), operand(bases, offsets, 1),
                                     operand(bases, offsets, 2)});
                       });
    });
    return {};
  }

 private:
  static constexpr std::int64_t line = 64;

  BlockOperand operand(void* const* bases, const Nest<3>::Offsets& offsets, std::size_t which) const {
    const std::int64_t bytes = offsets[which] * static_cast<std::int64_t>(size_of(dtypes_[which]));
    return {static_cast<char*>(bases[which]) + bytes, dtypes_[which], nest_.stride(which, 1), nest_.stride(which, 0)};
  }

  Nest<3> nest_;
  DataType dtypes_[3];
  RunBlock run_block_;
  std::int64_t grain_;
  int threads_;
};

}  // namespace

std::unique_ptr<const Plan> make_block_plan(const Problem& problem, RunBlock run_block, std::int64_t grain) {
  return std::make_unique<BlockPlan>(problem, run_block, grain);
}

}  // namespace xpuruntime::cpu
