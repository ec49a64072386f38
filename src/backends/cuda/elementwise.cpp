#include "backends/cuda/elementwise.h"

#include "backends/cuda/checks.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"

namespace xpuruntime::cuda {
namespace {

std::int64_t broadcast_stride(const TensorSpec& spec, std::size_t dim, std::size_t rank) {
  const std::size_t missing = rank - spec.shape.size();
  if (dim < missing || spec.shape[dim - missing] == 1) return 0;
  return spec.strides[dim - missing];
}

struct OneDim {
  std::int64_t extent = 1;
  std::int64_t strides[3] = {};
};

/// Joins the dim to the one before it where every operand walks both with one stride.
void append(ElementwiseShape& shape, const OneDim& dim) {
  const int last = shape.rank - 1;
  bool joins = last >= 0;
  for (int i = 0; joins && i < 3; ++i) joins = shape.strides[i][last] == dim.strides[i] * dim.extent;
  const int slot = joins ? last : shape.rank++;
  shape.extent[slot] = joins ? shape.extent[slot] * dim.extent : dim.extent;
  for (int i = 0; i < 3; ++i) shape.strides[i][slot] = dim.strides[i];
}

/// One run of neighbours in every operand, each starting on 16 bytes.
bool is_contiguous(const ElementwiseShape& shape, const Problem& problem) {
  if (shape.rank > 1) return false;
  const bool two_inputs = problem.inputs.size() == 2;
  if (shape.rank == 1) {
    if (shape.strides[0][0] != 1 || shape.strides[2][0] != 1) return false;
    if (two_inputs && shape.strides[1][0] != 1) return false;
  }
  for (const TensorSpec& input : problem.inputs) {
    if (input.alignment < 16) return false;
  }
  return problem.outputs[0].alignment >= 16;
}

Verdict adds_dtype(const Problem& problem, const DeviceProfile&) {
  const DataType dtype = problem.outputs[0].dtype;
  for (const TensorSpec& input : problem.inputs) {
    if (input.dtype != dtype) return Verdict::no("inputs and output differ in dtype");
  }
  switch (dtype) {
    case DataType::float64:
    case DataType::float32:
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::int32:
    case DataType::int64:
      return Verdict::yes();
    default:
      return refuse_dtype(dtype);
  }
}

Verdict no_tf32_storage(const Problem& problem, const DeviceProfile&) {
  // tf32 is a way to compute; cast converts storage.
  for (const DataType dtype : {problem.inputs[0].dtype, problem.outputs[0].dtype}) {
    if (dtype == DataType::tfloat32) return refuse_dtype(dtype);
  }
  return Verdict::yes();
}

}  // namespace

ElementwiseShape elementwise_shape(const Problem& problem) {
  const TensorSpec& output = problem.outputs[0];
  const std::size_t rank = output.shape.size();
  ElementwiseShape shape;
  shape.count = element_count(output);
  if (shape.count == 0) return shape;
  for (std::size_t d = 0; d < rank; ++d) {
    OneDim dim;
    dim.extent = output.shape[d];
    if (dim.extent == 1) continue;
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      dim.strides[i] = broadcast_stride(problem.inputs[i], d, rank);
    }
    dim.strides[2] = output.strides[d];
    append(shape, dim);
  }
  shape.contiguous = is_contiguous(shape, problem);
  return shape;
}

Verdict supports_add(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({has_code, is_aligned, adds_dtype}, problem, profile);
}

std::unique_ptr<const Plan> prepare_add(const Problem& problem, const PrepareContext& context) {
  const AddLaunch launch{elementwise_shape(problem), problem.outputs[0].dtype};
  return std::make_unique<LaunchPlan<AddLaunch>>("add elementwise", context.device, launch);
}

Verdict supports_cast(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({has_code, is_aligned, floats_only, no_tf32_storage}, problem, profile);
}

std::unique_ptr<const Plan> prepare_cast(const Problem& problem, const PrepareContext& context) {
  const CastLaunch launch{elementwise_shape(problem), problem.inputs[0].dtype, problem.outputs[0].dtype};
  return std::make_unique<LaunchPlan<CastLaunch>>("cast elementwise", context.device, launch);
}

}  // namespace xpuruntime::cuda
