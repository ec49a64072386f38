#include "backends/cuda/losses.h"

#include <algorithm>

#include "backends/cuda/elementwise.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

Verdict target_dtype(const Problem& problem, const DeviceProfile&) {
  const DataType target = problem.inputs[1].dtype;
  return is_floating(target) ? is_same_dtype("input 1", target, "the input's", problem.inputs[0].dtype)
                             : Verdict::yes();
}

PointwiseLossLaunch launch_of(const Problem& problem, const DeviceProfile& profile) {
  const TensorSpec &input = problem.inputs[0], &target = problem.inputs[1];
  const Dims shape = broadcast_shapes(input.shape, target.shape);
  PointwiseLossLaunch launch;
  launch.terms = pointwise_loss_terms(problem);
  launch.output = loss_output(problem, launch.terms.divisor);
  Problem terms = problem;  // with an output for each
  if (launch.output.reduced) terms.outputs[0] = make_spec(input.dtype, shape);
  launch.shape = joint_shape({&input, &target}, terms.outputs[0]);
  launch.shape.contiguous =
      target.dtype == input.dtype && terms.outputs[0].dtype == input.dtype && is_aligned_run(launch.shape, terms);
  launch.dtype = input.dtype;
  launch.target = target.dtype;
  const auto width = launch.shape.contiguous ? static_cast<std::int64_t>(16 / size_of(input.dtype)) : 1;
  launch.output.parts = loss_blocks(launch.shape.count, width, launch.output.reduced, profile);
  return launch;
}

}  // namespace

LossOutput loss_output(const Problem& problem, double mean) {
  const std::string_view reduction = problem.attributes.choice("reduction");
  return {problem.outputs[0].dtype, reduction != "none", reduction == "sum" ? 1 : mean};
}

std::int64_t loss_blocks(std::int64_t elements, std::int64_t width, bool reduced, const DeviceProfile& profile) {
  constexpr std::int64_t threads = 256, most = 65536, busy = 8;  // of a block, in all, of a multiprocessor
  const std::int64_t blocks = (elements + threads * width - 1) / (threads * width);
  return std::min(blocks, reduced ? busy * std::max(profile.compute_units, 1) : most);
}

Verdict supports_pointwise_loss(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, target_dtype}, problem, profile);
}

std::uint64_t pointwise_loss_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  return loss_bytes(launch_of(problem, profile).output);
}

std::unique_ptr<const Plan> prepare_pointwise_loss(const Problem& problem, const PrepareContext& context) {
  const PointwiseLossLaunch launch = launch_of(problem, context.profile);
  return std::make_unique<LaunchPlan<PointwiseLossLaunch>>("pointwise loss", context.device, launch,
                                                           "parts=" + std::to_string(launch.output.parts));
}

}  // namespace xpuruntime::cuda
