#include "backends/cpu/norm/lines.h"

#include <algorithm>

#include "core/result_layouts.h"

namespace xpuruntime::cpu {
namespace {

Verdict has_input_dtypes(const Problem& problem) {
  const DataType in = problem.inputs[0].dtype, last = problem.inputs.back().dtype;
  const Verdict gradient = is_same_dtype("the gradient", last, "the input's", in);
  if (problem.direction == Direction::backward && !gradient.supported) return gradient;
  return is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", in);
}

}  // namespace

Lines lines_along(const Dims& shape, std::int64_t dim) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto axis = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
  Lines lines{1, shape[axis], 1};
  for (std::size_t i = 0; i < axis; ++i) lines.outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) lines.inner *= shape[i];
  return lines;
}

Lines lines_along(const TensorSpec& spec, std::int64_t dim) {
  if (spec.contiguous) return lines_along(spec.shape, dim);
  const std::size_t axis = static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(spec.shape.size()) : dim);
  const std::int64_t length = spec.shape[axis], inner = length == 1 ? 1 : spec.strides[axis];
  return {element_count(spec) / (length * inner), length, inner};
}

Lines lines_along_last(const Dims& shape, std::int64_t count) {
  Lines lines;
  const std::size_t split = shape.size() - static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < shape.size(); ++i) (i < split ? lines.outer : lines.length) *= shape[i];
  return lines;
}

Verdict supports_lines(const Problem& problem) {
  if (const Verdict verdict = is_contiguous(problem); !verdict.supported) return verdict;
  return has_input_dtypes(problem);
}

Verdict supports_lines_in_any_order(const Problem& problem) {
  const TensorSpec& first = problem.inputs[0];
  const auto alike = [&](const TensorSpec& spec) { return spec.strides == first.strides; };
  const bool all = std::all_of(problem.inputs.begin(), problem.inputs.end(), alike) && alike(problem.outputs[0]);
  if (!all || in_layout_of(first, first.dtype).strides != first.strides) return supports_lines(problem);
  return has_input_dtypes(problem);
}

std::int64_t lines_per_thread(std::int64_t length, std::int64_t picoseconds) {
  constexpr std::int64_t worth_waking = 10'000'000;  // ten microseconds
  return worth_waking / (std::max<std::int64_t>(length, 8) * picoseconds) + 1;
}

}  // namespace xpuruntime::cpu
