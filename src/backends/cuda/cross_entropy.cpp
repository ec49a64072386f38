#include <algorithm>

#include "backends/cuda/elementwise.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "backends/cuda/losses.h"
#include "backends/cuda/rows.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

Verdict index_targets(const Problem& problem, const DeviceProfile&) {
  if (is_floating(problem.inputs[1].dtype)) return Verdict::no("targets of probabilities are not supported");
  if (problem.attributes.real("label_smoothing") != 0) return Verdict::no("label_smoothing is not supported");
  return Verdict::yes();
}

Verdict score_dtypes(const Problem& problem, const DeviceProfile&) {
  const DataType dtype = problem.inputs[0].dtype, output = problem.outputs[0].dtype;
  if (output != DataType::float32) {
    if (const Verdict same = is_same_dtype("output 0", output, "f32 or the input's", dtype); !same.supported)
      return same;
  }
  if (problem.inputs.size() < 3 || problem.inputs[2].dtype == DataType::float32) return Verdict::yes();
  return is_same_dtype("input 2", problem.inputs[2].dtype, "f32 or the input's", dtype);
}

Verdict dense_weight(const Problem& problem, const DeviceProfile&) { return is_contiguous(problem, 2); }

Verdict score_rows(const Problem& problem, const DeviceProfile&) {
  if (problem.inputs[0].shape.size() > 2) return Verdict::no("the class dim is not the last one");
  return takes_rows(rows_of(problem.inputs[0], 1));
}

/// The dim of the scores that counts classes: the second, or the only one.
std::size_t class_dim(const Problem& problem) { return problem.inputs[0].shape.size() == 1 ? 0 : 1; }

ClassTargets targets_of(const Problem& problem) {
  ClassTargets targets;
  targets.classes = problem.inputs[0].shape[class_dim(problem)];
  targets.ignore_index = problem.attributes.integer("ignore_index");
  targets.dtype = problem.inputs[1].dtype;
  if (problem.inputs.size() > 2) targets.weight = problem.inputs[2].dtype;
  return targets;
}

/// A plan that reports targets that are no classes.
template <class Launch>
std::unique_ptr<const Plan> plan_of(const char* name, const Problem& problem, const PrepareContext& context,
                                    const Launch& launch, std::string token) {
  const std::string classes = std::to_string(launch.targets.classes);
  std::unique_ptr<ValueFault> fault = context.driver.make_value_fault(
      context.device.index,
      to_string(problem) + ": a target is outside the " + classes + " classes and is not ignore_index; give 0 to " +
          std::to_string(launch.targets.classes - 1) + " or " + std::to_string(launch.targets.ignore_index));
  return std::make_unique<LaunchPlan<Launch>>(name, context.device, launch, std::move(token), std::move(fault));
}

std::int64_t stride_of(const TensorSpec& spec) { return spec.shape.empty() ? 0 : spec.strides[0]; }

CrossEntropyLaunch launch_of(const Problem& problem, const DeviceProfile& profile) {
  const Rows scores = rows_of(problem.inputs[0], 1);
  CrossEntropyLaunch launch;
  launch.shape = {scores.rows, static_cast<int>(scores.columns), scores.stride, stride_of(problem.outputs[0])};
  launch.dtype = problem.inputs[0].dtype;
  launch.target_stride = stride_of(problem.inputs[1]);
  launch.targets = targets_of(problem);
  launch.output = loss_output(problem, 0);
  launch.team = team_for(scores, profile, RowUse::loss);
  launch.output.parts = scores.rows;
  if (launch.team.held > 0) {
    launch.output.parts =
        std::min<std::int64_t>(launch.team.blocks_for(scores.rows), 4 * busy_blocks(launch.team, profile));
  }
  return launch;
}

/// The scores, with the strides of their targets' dims.
TensorSpec without_classes(const Problem& problem) {
  TensorSpec spec = problem.inputs[0];
  spec.shape = spec.strides = problem.inputs[1].shape;
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    spec.strides[i] = problem.inputs[0].strides[i < class_dim(problem) ? i : i + 1];
  }
  return spec;
}

NllLossLaunch nll_launch_of(const Problem& problem, const DeviceProfile& profile) {
  const TensorSpec scores = without_classes(problem), &targets = problem.inputs[1];
  NllLossLaunch launch;
  launch.class_stride = problem.inputs[0].strides[class_dim(problem)];
  launch.dtype = scores.dtype;
  launch.targets = targets_of(problem);
  launch.output = loss_output(problem, 0);
  launch.shape = joint_shape({&scores, &targets},
                             launch.output.reduced ? make_spec(scores.dtype, targets.shape) : problem.outputs[0]);
  launch.output.parts = loss_blocks(launch.shape.count, 1, launch.output.reduced, profile);
  return launch;
}

}  // namespace

Verdict supports_cross_entropy(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, index_targets, score_dtypes, dense_weight, score_rows}, problem, profile);
}

std::uint64_t cross_entropy_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  return loss_bytes(launch_of(problem, profile).output);
}

std::unique_ptr<const Plan> prepare_cross_entropy(const Problem& problem, const PrepareContext& context) {
  const CrossEntropyLaunch launch = launch_of(problem, context.profile);
  return plan_of("cross_entropy rows", problem, context, launch, token_of(launch.team));
}

Verdict supports_nll_loss(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, score_dtypes, dense_weight}, problem, profile);
}

std::uint64_t nll_loss_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  return loss_bytes(nll_launch_of(problem, profile).output);
}

std::unique_ptr<const Plan> prepare_nll_loss(const Problem& problem, const PrepareContext& context) {
  const NllLossLaunch launch = nll_launch_of(problem, context.profile);
  return plan_of("nll_loss", problem, context, launch, "parts=" + std::to_string(launch.output.parts));
}

}  // namespace xpuruntime::cuda
