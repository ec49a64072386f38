#include "core/views.h"

#include <algorithm>

namespace xpuruntime {
namespace {

std::size_t axis_of(std::int64_t dim, std::size_t rank) {
  return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim);
}

View transposed(const TensorSpec& spec, const std::vector<std::int64_t>& dims) {
  const std::size_t rank = spec.shape.size();
  View view{spec};
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t from = dims.empty() ? rank - 1 - i : axis_of(dims[i], rank);
    view.spec.shape[i] = spec.shape[from];
    view.spec.strides[i] = spec.strides[from];
  }
  return view;
}

View sliced(const TensorSpec& spec, const Attributes& attributes, const Dims& shape) {
  const std::size_t axis = axis_of(attributes.integer("dim"), spec.shape.size());
  const std::int64_t extent = spec.shape[axis], start = attributes.integer("start");
  View view{spec};
  view.spec.shape = shape;
  // With one element left, or none, the step leads nowhere and may be too large to multiply with.
  if (shape[axis] > 1) view.spec.strides[axis] *= attributes.integer("step");
  if (shape[axis] > 0)
    view.offset = (start < 0 ? std::max(start + extent, std::int64_t{0}) : start) * spec.strides[axis];
  return view;
}

}  // namespace

View source_view(const Problem& problem) {
  const TensorSpec& input = problem.inputs[0];
  if (problem.op == OpId::transpose) return transposed(input, problem.attributes.list("dims"));
  if (problem.op == OpId::slice) return sliced(input, problem.attributes, problem.outputs[0].shape);
  return View{input};
}

View concat_target(const Problem& problem, std::size_t input) {
  const std::size_t axis = axis_of(problem.attributes.integer("dim"), problem.outputs[0].shape.size());
  View view{problem.outputs[0]};
  view.spec.shape = problem.inputs[input].shape;
  for (std::size_t i = 0; i < input; ++i) view.offset += problem.inputs[i].shape[axis] * view.spec.strides[axis];
  return view;
}

}  // namespace xpuruntime
