#include "backends/cuda/checks.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"

namespace xpuruntime::cuda {

Verdict supports_reference(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({has_code, is_aligned, floats_only}, problem, profile);
}

std::unique_ptr<const Plan> prepare_reference(const Problem& problem, const PrepareContext& context) {
  ReferenceLaunch launch;
  launch.shape = matmul_shape(problem);
  launch.a = problem.inputs[0].dtype;
  launch.b = problem.inputs[1].dtype;
  launch.c = problem.outputs[0].dtype;
  return std::make_unique<LaunchPlan<ReferenceLaunch>>("matmul reference", context.device, launch);
}

}  // namespace xpuruntime::cuda
