#include <cmath>

#include "backends/cpu/base/nest.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/elementwise/dropout.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/plan.h"

namespace xpuruntime::cpu {

DropoutCall dropout_call(const Problem& problem, const RunArguments& arguments) {
  DropoutCall call;
  call.seed = static_cast<std::uint64_t>(problem.attributes.integer("seed"));
  if (arguments.inputs.size() == 2) {
    const auto* words = arguments.inputs[1]->as<const std::int64_t>();
    call.seed = static_cast<std::uint64_t>(words[0]);
    call.offset = static_cast<std::uint64_t>(words[problem.inputs[1].strides[0]]);
  }
  if (problem.attributes.boolean("training")) {
    const double p = problem.attributes.real("p");
    call.threshold = static_cast<std::uint64_t>(std::floor(p * 0x1p32));
    call.kept_share = 1 - p;
  }
  return call;
}

namespace {

/// Goes over the elements in row-major order, as their numbers do.
class DropoutPlan final : public Plan {
 public:
  explicit DropoutPlan(const Problem& problem)
      : problem_(problem),
        nest_(problem.outputs[0].shape, {&problem.inputs[0], &problem.outputs[0]}, NestOrder::row_major),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const DropoutCall call = dropout_call(problem_, arguments);
    parallel_for(nest_.count(), heavy_grain, threads_, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin, end, [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t at) {
        Block block{rows, columns};
        block.a = operand(arguments.inputs[0]->as<void>(), problem_.inputs[0].dtype, 0, offsets[0]);
        block.out = operand(arguments.outputs[0]->as<void>(), problem_.outputs[0].dtype, 1, offsets[1]);
        dropout_of_block(block, call, call.offset + static_cast<std::uint64_t>(at));
      });
    });
    return {};
  }

 private:
  BlockOperand operand(void* base, DataType dtype, std::size_t which, std::int64_t offset) const {
    const std::int64_t bytes = offset * static_cast<std::int64_t>(size_of(dtype));
    return {static_cast<char*>(base) + bytes, dtype, nest_.stride(which, 1), nest_.stride(which, 0)};
  }

  Problem problem_;
  Nest<2> nest_;
  int threads_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_dropout_simd(const Problem& problem, const PrepareContext& context) {
  if (!problem.attributes.boolean("training") || problem.attributes.real("p") == 0) {
    Problem copy = problem;  // in any order of its elements
    copy.inputs.resize(1);
    return prepare_cast_simd(copy, context);
  }
  return std::make_unique<DropoutPlan>(problem);
}

}  // namespace xpuruntime::cpu
