#include <algorithm>

#include "backends/cuda/elementwise.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

Verdict rope_dtypes(const Problem& problem, const DeviceProfile&) {
  return is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", problem.inputs[0].dtype);
}

TensorSpec without_last_dim(const TensorSpec& spec) {
  const std::size_t rank = spec.shape.size() - 1;
  TensorSpec out = spec;
  out.shape = Dims(std::span(spec.shape.begin(), rank));
  out.strides = Dims(std::span(spec.strides.begin(), rank));
  return out;
}

/// All heads of a token have its position.
TensorSpec for_heads(const TensorSpec& positions) {
  TensorSpec out = positions;
  out.shape = Dims::filled(positions.shape.size() + 1, 1);
  out.strides = Dims::filled(positions.shape.size() + 1, 0);
  std::copy(positions.shape.begin(), positions.shape.end(), &out.shape[0]);
  std::copy(positions.strides.begin(), positions.strides.end(), &out.strides[0]);
  return out;
}

AngleTable table_of(const TensorSpec& spec) { return {spec.dtype, spec.strides[0], spec.strides[1]}; }

bool has_vectors(const RopeLaunch& launch, const TensorSpec& input, const TensorSpec& output) {
  const auto width = static_cast<std::int64_t>(16 / size_of(launch.dtype));
  bool fits = input.alignment >= 16 && output.alignment >= 16 && launch.input_step == 1 && launch.output_step == 1 &&
              launch.pairs % width == 0 && launch.size % width == 0;
  for (int d = 0; d < launch.heads.rank; ++d) {
    fits &= launch.heads.strides[0][d] % width == 0 && launch.heads.strides[2][d] % width == 0;
  }
  return fits;
}

}  // namespace

Verdict supports_rope(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, rope_dtypes}, problem, profile);
}

std::unique_ptr<const Plan> prepare_rope(const Problem& problem, const PrepareContext& context) {
  const TensorSpec &input = problem.inputs[0], &output = problem.outputs[0];
  const TensorSpec heads = without_last_dim(input), positions = for_heads(problem.inputs[1]);
  RopeLaunch launch;
  launch.heads = joint_shape({&heads, &positions}, without_last_dim(output));
  launch.size = input.shape.back();
  launch.pairs = problem.inputs[2].shape[1];
  launch.input_step = input.strides.back();
  launch.output_step = output.strides.back();
  launch.positions = problem.inputs[2].shape[0];
  launch.cos = table_of(problem.inputs[2]);
  launch.sin = table_of(problem.inputs[3]);
  launch.dtype = input.dtype;
  launch.position = positions.dtype;
  launch.interleaved = problem.attributes.boolean("interleaved");
  launch.vectors = has_vectors(launch, input, output);
  return std::make_unique<LaunchPlan<RopeLaunch>>(
      "rope elementwise", context.device, launch, std::string(),
      context.driver.make_value_fault(
          context.device.index,
          to_string(problem) + ": a position is outside the tables; give " +
              (launch.positions == 0 ? "tables with rows" : "0 to " + std::to_string(launch.positions - 1))));
}

}  // namespace xpuruntime::cuda
