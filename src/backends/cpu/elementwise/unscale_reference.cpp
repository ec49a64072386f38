#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/elementwise/kernels.h"

namespace xpuruntime::cpu {
namespace {

/// In double, where a product of two floats of at most 32 bits is exact, and rounded once. What counts as finite is the
/// gradient, its product, and what came of the product in the dtype that is written.
Status run_unscale(const Problem& problem, const RunArguments& arguments) {
  const LoadElement load = loader_of(problem.inputs[0].dtype), read_back = loader_of(problem.outputs[0].dtype);
  const StoreElement store = storer_of(problem.outputs[0].dtype);
  const double inverse = loader_of(problem.inputs[1].dtype)(arguments.inputs[1]->as<void>(), 0);
  const void* in = arguments.inputs[0]->as<void>();
  void* out = arguments.outputs[0]->as<void>();
  Walk<2> walk(problem.outputs[0].shape, problem.inputs[0], problem.outputs[0]);
  bool found = false;
  for (; walk.more(); walk.next()) {
    const double gradient = load(in, walk.offset(0)), product = gradient * inverse;
    store(out, walk.offset(1), product);
    found |= !std::isfinite(gradient) || !std::isfinite(product) || !std::isfinite(read_back(out, walk.offset(1)));
  }
  storer_of(problem.outputs[1].dtype)(arguments.outputs[1]->as<void>(), 0, found ? 1 : 0);
  return {};
}

}  // namespace

std::unique_ptr<const Plan> prepare_unscale_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_unscale);
}

}  // namespace xpuruntime::cpu
