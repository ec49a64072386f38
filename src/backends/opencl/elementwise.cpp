#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"

namespace xpuruntime::opencl {
namespace {

std::unique_ptr<const Plan> prepare(const Problem& problem, const PrepareContext& context, const char* function) {
  const TensorSpec& a = problem.inputs.front();
  const TensorSpec& b = problem.inputs.back();  // of cast: a again
  const TensorSpec& c = problem.outputs.front();
  const RankedIndex at = make_index(c.shape, broadcast_strides(c.shape, a.shape, a.strides),
                                    broadcast_strides(c.shape, b.shape, b.strides), c.strides);
  std::string options = " -D RANK=" + std::to_string(at.rank) + type_option('A', a.dtype);
  if (problem.inputs.size() > 1) options += type_option('B', b.dtype);
  auto plan = std::make_unique<LaunchPlan>(context_of(context), "rank=" + std::to_string(at.rank));
  Launch& launch = plan->add({.source = elementwise_cl,
                              .function = function,
                              .options = options + type_option('C', c.dtype),
                              .items = at.index.count});
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) launch.input(i);
  launch.output(0).constant(at.index);
  return plan;
}

}  // namespace

std::unique_ptr<const Plan> prepare_add(const Problem& problem, const PrepareContext& context) {
  return prepare(problem, context, "add");
}

std::unique_ptr<const Plan> prepare_cast(const Problem& problem, const PrepareContext& context) {
  return prepare(problem, context, "cast");
}

}  // namespace xpuruntime::opencl
