#include "backends/cpu/pool/shape.h"

#include <algorithm>

namespace xpuruntime::cpu {
PoolShape pool_shape(const Problem& problem) {
  PoolShape shape;
  const Attributes& attributes = problem.attributes;
  shape.average = problem.op == OpId::avg_pool2d || problem.op == OpId::avg_pool3d;
  shape.batch = problem.inputs[0].shape[0];
  shape.channels = problem.inputs[0].shape[1];
  spread(problem.inputs[0].shape, shape.in, 2);
  spread(problem.outputs[0].shape, shape.out, 2);
  spread(attributes.list("kernel_size"), shape.kernel);
  spread(attributes.list("stride"), shape.stride);
  spread(attributes.list("padding"), shape.padding);
  for (std::size_t i = 0; i < 3; ++i) {
    if (shape.stride[i] == 0) shape.stride[i] = shape.kernel[i];
  }
  if (shape.average) {
    shape.count_padding = attributes.boolean("count_include_pad");
  } else {
    spread(attributes.list("dilation"), shape.dilation);
  }
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
