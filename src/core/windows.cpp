#include "core/windows.h"

#include <algorithm>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {
namespace {

Windows windows_of(const Problem& problem) {
  Windows windows;
  spread(problem.inputs[0].shape, windows.in, 2);
  spread(problem.outputs[0].shape, windows.out, 2);
  spread(problem.attributes.list("stride"), windows.stride);
  spread(problem.attributes.list("padding"), windows.padding);
  return windows;
}

}  // namespace

std::int64_t ConvShape::largest_number() const {
  std::int64_t largest = 0;
  for (const Extents* extents : {&kernel, &stride, &padding, &dilation})
    largest = std::max(largest, *std::max_element(extents->begin(), extents->end()));
  return largest;
}

ConvShape conv_shape(const Problem& problem) {
  const Dims& weight = problem.inputs[1].shape;
  const std::int64_t groups = problem.attributes.integer("groups");
  ConvShape shape{windows_of(problem), problem.inputs[0].shape[0], groups, weight[1], weight[0] / groups};
  spread(weight, shape.kernel, 2);
  spread(problem.attributes.list("dilation"), shape.dilation);
  return shape;
}

Windows pool_windows(const Problem& problem) {
  Windows windows = windows_of(problem);
  spread(problem.attributes.list("kernel_size"), windows.kernel);
  for (std::size_t i = 0; i < 3; ++i) {
    if (windows.stride[i] == 0) windows.stride[i] = windows.kernel[i];
  }
  const bool average = problem.op == OpId::avg_pool2d || problem.op == OpId::avg_pool3d;
  if (!average) spread(problem.attributes.list("dilation"), windows.dilation);
  return windows;
}

}  // namespace xpuruntime
