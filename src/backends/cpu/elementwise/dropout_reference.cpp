#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/elementwise/dropout.h"
#include "backends/cpu/elementwise/kernels.h"

namespace xpuruntime::cpu {

namespace {

Status run_dropout(const Problem& problem, const RunArguments& arguments) {
  const DropoutCall call = dropout_call(problem, arguments);
  const LoadElement load = loader_of(problem.inputs[0].dtype);
  const StoreElement store = storer_of(problem.outputs[0].dtype);
  const void* in = arguments.inputs[0]->as<void>();
  void* out = arguments.outputs[0]->as<void>();
  Walk<2> walk(problem.outputs[0].shape, problem.inputs[0], problem.outputs[0]);
  for (std::uint64_t index = call.offset; walk.more(); walk.next(), ++index) {
    const bool kept = Philox::words(call.seed, index / 4)[index % 4] >= call.threshold;
    store(out, walk.offset(1), kept ? load(in, walk.offset(0)) / call.kept_share : 0);
  }
  return {};
}

}  // namespace

std::unique_ptr<const Plan> prepare_dropout_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_dropout);
}

}  // namespace xpuruntime::cpu
