#include "backends/cpu/movement/views.h"

#include <algorithm>
#include <string>

#include "backends/cpu/base/elements.h"

namespace xpuruntime::cpu {
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

namespace {

Status outside(std::int64_t position, std::int64_t index, std::int64_t rows) {
  return {ErrorCode::invalid_argument,
          "index " + std::to_string(index) + " at position " + std::to_string(position) +
              " of the indices is outside the table of " + std::to_string(rows) + " rows; " +
              (rows == 0 ? "give a table with rows" : "give 0 to " + std::to_string(rows - 1))};
}

// Negative ones are large as unsigned numbers. No early way out, so that it runs in vectors.
template <class T>
bool all_inside(const T* indices, std::int64_t count, std::int64_t rows) {
  bool inside = true;
  for (std::int64_t i = 0; i < count; ++i) {
    inside &= static_cast<std::uint64_t>(std::int64_t{indices[i]}) < static_cast<std::uint64_t>(rows);
  }
  return inside;
}

}  // namespace

Status check_indices(const TensorSpec& spec, const void* indices, std::int64_t rows) {
  const std::int64_t count = element_count(spec);
  if (spec.contiguous && spec.dtype == DataType::int64 &&
      all_inside(static_cast<const std::int64_t*>(indices), count, rows)) {
    return {};
  }
  if (spec.contiguous && spec.dtype == DataType::int32 &&
      all_inside(static_cast<const std::int32_t*>(indices), count, rows)) {
    return {};
  }
  const LoadInteger load = integer_loader_of(spec.dtype);
  Walk<1> walk(spec.shape);
  walk.set_operand(0, spec);
  for (std::int64_t position = 0; walk.more(); walk.next(), ++position) {
    const std::int64_t index = load(indices, walk.offset(0));
    if (index < 0 || index >= rows) return outside(position, index, rows);
  }
  return {};
}

}  // namespace xpuruntime::cpu
