#include "backends/cpu/pool/shape.h"

#include <algorithm>

namespace xpuruntime::cpu {

PoolShape pool_shape(const Problem& problem) {
  PoolShape shape{pool_windows(problem)};
  shape.average = problem.op == OpId::avg_pool2d || problem.op == OpId::avg_pool3d;
  if (shape.average) shape.count_padding = problem.attributes.boolean("count_include_pad");
  shape.batch = problem.inputs[0].shape[0];
  shape.channels = problem.inputs[0].shape[1];
  return shape;
}

std::vector<std::int64_t> PoolShape::counts(std::size_t axis) const {
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < out[axis]; ++i) {
    const std::int64_t begin = i * stride[axis] - padding[axis];
    const std::int64_t end = std::min(begin + kernel[axis], in[axis] + padding[axis]);
    counts.push_back(count_padding ? end - begin : std::min(end, in[axis]) - std::max<std::int64_t>(begin, 0));
  }
  return counts;
}

}  // namespace xpuruntime::cpu
