#include <algorithm>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "backends/cuda/rows.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

Verdict index_targets(const Problem& problem, const DeviceProfile&) {
  if (is_floating(problem.inputs[1].dtype)) return Verdict::no("targets of probabilities are not built");
  if (problem.attributes.real("label_smoothing") != 0) return Verdict::no("label_smoothing is not built");
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

Verdict score_rows(const Problem& problem, const DeviceProfile&) {
  if (problem.inputs[0].shape.size() > 2) return Verdict::no("the class dim is not the last one");
  if (const Verdict weight = is_contiguous(problem, 2); !weight.supported) return weight;
  return takes_rows(rows_of(problem.inputs[0], 1));
}

LossReduction reduction_of(const Problem& problem) {
  const std::string_view reduction = problem.attributes.choice("reduction");
  return reduction == "none" ? LossReduction::none : reduction == "sum" ? LossReduction::sum : LossReduction::mean;
}

std::int64_t stride_of(const TensorSpec& spec) { return spec.shape.empty() ? 0 : spec.strides[0]; }

CrossEntropyLaunch launch_of(const Problem& problem, const DeviceProfile& profile) {
  const Rows scores = rows_of(problem.inputs[0], 1);
  CrossEntropyLaunch launch;
  launch.shape = {scores.rows, static_cast<int>(scores.columns), scores.stride, stride_of(problem.outputs[0])};
  launch.dtype = problem.inputs[0].dtype;
  launch.target = problem.inputs[1].dtype;
  launch.output = problem.outputs[0].dtype;
  if (problem.inputs.size() > 2) launch.weight = problem.inputs[2].dtype;
  launch.target_stride = stride_of(problem.inputs[1]);
  launch.ignore_index = problem.attributes.integer("ignore_index");
  launch.reduction = reduction_of(problem);
  launch.team = team_for(scores, profile, RowUse::loss);
  launch.parts = scores.rows;
  if (launch.team.held > 0) {
    launch.parts = std::min<std::int64_t>(launch.team.blocks_for(scores.rows), 4 * busy_blocks(launch.team, profile));
  }
  return launch;
}

}  // namespace

Verdict supports_cross_entropy(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, index_targets, score_dtypes, score_rows}, problem, profile);
}

std::uint64_t cross_entropy_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  return loss_bytes(launch_of(problem, profile));
}

std::unique_ptr<const Plan> prepare_cross_entropy(const Problem& problem, const PrepareContext& context) {
  const CrossEntropyLaunch launch = launch_of(problem, context.profile);
  const std::int64_t ignore = launch.ignore_index;
  std::unique_ptr<ValueFault> fault = context.driver.make_value_fault(
      context.device.index, to_string(problem) + ": a target is outside the " + std::to_string(launch.shape.columns) +
                                " classes and is not ignore_index; give 0 to " +
                                std::to_string(launch.shape.columns - 1) + " or " + std::to_string(ignore));
  return std::make_unique<LaunchPlan<CrossEntropyLaunch>>("cross_entropy rows", context.device, launch,
                                                          token_of(launch.team), std::move(fault));
}

}  // namespace xpuruntime::cuda
