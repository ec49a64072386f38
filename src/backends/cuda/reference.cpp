#include "backends/cuda/finish.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {

// This build has code for Ampere and newer.
Verdict supports_any(const Problem&, const DeviceProfile& profile) { return has_compute_capability(profile, 8); }

std::unique_ptr<const Plan> prepare_reference(const Problem& problem, const PrepareContext& context) {
  const bool linear = problem.op == OpId::linear;
  ReferenceLaunch launch;
  // Scales go by the rows of one product, so its batches stay apart.
  launch.shape = linear ? product_shape(problem) : matmul_shape(problem);
  launch.a = problem.inputs[0].dtype;
  launch.b = problem.inputs[1].dtype;
  launch.output = problem.outputs[0].dtype;
  launch.integers = !is_floating(launch.output);
  for (const TensorSpec& input : problem.inputs) launch.integers = launch.integers && !is_floating(input.dtype);
  launch.finish = finish_of(problem);
  return std::make_unique<LaunchPlan<ReferenceLaunch>>(linear ? "linear reference" : "matmul reference", context.device,
                                                       launch);
}

}  // namespace xpuruntime::cuda
