#include <algorithm>

#include "backends/cuda/elementwise.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "core/elements.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

constexpr OpList tests = comparison_ops | OpList{OpId::isnan, OpId::isinf};

/// The nearest number that the dtype has, so that taking it as a result rounds nothing.
double in_dtype(DataType dtype, double value) {
  std::byte bytes[8] = {};
  storer_of(dtype)(bytes, 0, value);
  return loader_of(dtype)(bytes, 0);
}

std::int64_t whole(double bound) {
  if (bound >= 0x1p63) return INT64_MAX;
  return bound <= -0x1p63 ? INT64_MIN : static_cast<std::int64_t>(bound);
}

void set_attributes(PointwiseLaunch& launch, const Problem& problem) {
  const Attributes& given = problem.attributes;
  switch (problem.op) {
    case OpId::clip:
      launch.low = whole(given.real("min"));
      launch.high = whole(given.real("max"));
      if (is_floating(launch.output)) {
        launch.first = in_dtype(launch.output, given.real("min"));
        launch.second = in_dtype(launch.output, given.real("max"));
      }
      break;
    case OpId::leaky_relu:
      launch.first = given.real("negative_slope");
      break;
    case OpId::elu:
      launch.first = given.real("alpha");
      break;
    case OpId::hard_sigmoid:
      launch.first = given.real("alpha");
      launch.second = given.real("beta");
      break;
    case OpId::gelu:
      launch.approximate = given.choice("approximate") == "tanh";
      break;
    default:
      break;
  }
}

/// Of booleans, which hold 0 or 1, what the bits become is what the truth becomes.
OpId op_of(const Problem& problem) {
  const bool boolean = problem.inputs[0].dtype == DataType::boolean;
  switch (problem.op) {
    case OpId::bitwise_not:
      return boolean ? OpId::logical_not : OpId::bitwise_not;
    case OpId::logical_and:
      return OpId::bitwise_and;
    case OpId::logical_or:
      return OpId::bitwise_or;
    case OpId::logical_xor:
      return OpId::bitwise_xor;
    default:
      return problem.op;
  }
}

PointwiseLaunch launch_of(const Problem& problem) {
  PointwiseLaunch launch;
  launch.shape = shape_of(problem);
  launch.op = op_of(problem);
  launch.inputs = static_cast<int>(problem.inputs.size());
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) launch.dtypes[i] = problem.inputs[i].dtype;
  launch.output = problem.outputs[0].dtype;
  set_attributes(launch, problem);
  return launch;
}

using LaunchFunction = cudaError_t(const PointwiseLaunch&, const Pointers&, cudaStream_t);

LaunchFunction* launch_function(const Problem& problem) {
  if (tests.contains(problem.op)) return launch_tests;
  return is_floating(problem.inputs[0].dtype) ? launch_floats : launch_integers;
}

/// Of a family of kernels.
struct FamilyLaunch {
  PointwiseLaunch points = {};
  LaunchFunction* function = nullptr;
};

cudaError_t launch(const FamilyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return launch.points.shape.count == 0 ? cudaSuccess : launch.function(launch.points, pointers, stream);
}

Verdict has_dtype_of_input(const Problem& problem, std::size_t first) {
  const DataType dtype = problem.inputs[first].dtype;
  for (std::size_t i = first + 1; i < problem.inputs.size(); ++i) {
    const std::string name = "input " + std::to_string(i);
    const Verdict same = is_same_dtype(name, problem.inputs[i].dtype, "the input's", dtype);
    if (!same.supported) return same;
  }
  return Verdict::yes();
}

}  // namespace

Verdict supports_pointwise(const Problem& problem, const DeviceProfile& profile) {
  if (const Verdict able = supports_any(problem, profile); !able.supported) return able;
  const DataType dtype = problem.inputs[0].dtype, output = problem.outputs[0].dtype;
  if (!pointwise_dtypes.contains(dtype)) return refuse_dtype("input 0", dtype, to_string(pointwise_dtypes));
  if (const Verdict same = has_dtype_of_input(problem, 0); !same.supported) return same;
  if (!tests.contains(problem.op)) return is_same_dtype("output 0", output, "the input's", dtype);
  return output == DataType::boolean ? Verdict::yes() : refuse_dtype("output 0", output, "bool");
}

std::unique_ptr<const Plan> prepare_pointwise(const Problem& problem, const PrepareContext& context) {
  FamilyLaunch launch{launch_of(problem), launch_function(problem)};
  launch.points.vectors = has_vectors(launch.points.shape, problem, problem.inputs[0].dtype);
  launch.points.shape.contiguous = is_aligned_run(launch.points.shape, problem);
  return std::make_unique<LaunchPlan<FamilyLaunch>>("elementwise", context.device, launch);
}

std::unique_ptr<const Plan> prepare_pointwise_reference(const Problem& problem, const PrepareContext& context) {
  const FamilyLaunch launch{launch_of(problem), launch_reference};
  return std::make_unique<LaunchPlan<FamilyLaunch>>("reference", context.device, launch);
}

Verdict supports_where(const Problem& problem, const DeviceProfile& profile) {
  if (const Verdict able = supports_any(problem, profile); !able.supported) return able;
  if (const Verdict same = has_dtype_of_input(problem, 1); !same.supported) return same;
  return is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", problem.inputs[1].dtype);
}

std::unique_ptr<const Plan> prepare_where(const Problem& problem, const PrepareContext& context) {
  const TensorSpec& output = problem.outputs[0];
  WhereLaunch launch;
  launch.shape = joint_shape({&problem.inputs[0], &problem.inputs[1], &problem.inputs[2]}, output, false, launch.third);
  launch.from = problem.inputs[1].dtype;
  launch.to = output.dtype;
  launch.bytes = static_cast<int>(size_of(output.dtype));
  launch.vectors = has_vectors(launch.shape, problem, output.dtype, launch.third);
  return std::make_unique<LaunchPlan<WhereLaunch>>("elementwise", context.device, launch);
}

std::unique_ptr<const Plan> prepare_where_reference(const Problem& problem, const PrepareContext& context) {
  WhereLaunch launch;
  launch.shape = joint_shape({&problem.inputs[0], &problem.inputs[1], &problem.inputs[2]}, problem.outputs[0], false,
                             launch.third);
  launch.from = problem.inputs[1].dtype;
  launch.to = problem.outputs[0].dtype;
  launch.bytes = 0;
  return std::make_unique<LaunchPlan<WhereLaunch>>("reference", context.device, launch);
}

}  // namespace xpuruntime::cuda
