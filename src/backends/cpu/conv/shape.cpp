#include "backends/cpu/conv/shape.h"

#include <algorithm>
#include <limits>
#include <string>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {
bool ConvShape::pointwise() const { return taps() == 1 && stride == Extents{1, 1, 1} && padding == Extents{0, 0, 0}; }

ConvShape conv_shape(const Problem& problem) {
  ConvShape shape;
  const Dims& weight = problem.inputs[1].shape;
  shape.batch = problem.inputs[0].shape[0];
  shape.groups = problem.attributes.integer("groups");
  shape.in_channels = weight[1];
  shape.out_channels = weight[0] / shape.groups;
  spread(problem.inputs[0].shape, shape.in, 2);
  spread(weight, shape.kernel, 2);
  spread(problem.outputs[0].shape, shape.out, 2);
  spread(problem.attributes.list("stride"), shape.stride);
  spread(problem.attributes.list("padding"), shape.padding);
  spread(problem.attributes.list("dilation"), shape.dilation);
  return shape;
}

bool conv_is_large(const ConvShape& shape) {
  constexpr double few_products = 1e6;
  const double outputs =
      static_cast<double>(shape.batch * shape.groups * shape.out_channels) * static_cast<double>(volume(shape.out));
  return outputs * static_cast<double>(shape.depth() + 4) >= few_products;
}

int conv_threads(const Problem& problem, const ConvShape& shape) {
  return conv_is_large(shape) ? threads_for(problem) : 1;
}

Verdict supports_modest_windows(const Problem& problem) {
  constexpr std::int64_t most = 1 << 26;  // their products with extents of tensors that can exist fit 63 bits
  const ConvShape shape = conv_shape(problem);
  std::int64_t largest = 0;
  for (const Extents* extents : {&shape.kernel, &shape.stride, &shape.padding, &shape.dilation}) {
    largest = std::max(largest, *std::max_element(extents->begin(), extents->end()));
  }
  return is_at_most("the largest of kernel size, stride, padding and dilation", largest, most);
}

Verdict supports_conv_columns(const ConvShape& shape) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (shape.depth() < 1) return Verdict::no("there are no input channels");
  const std::int64_t padding = *std::max_element(shape.padding.begin(), shape.padding.end());
  return is_at_most("the largest extent", std::max({shape.depth(), shape.out_channels, volume(shape.out), padding}),
                    most);
}

Verdict supports_fast_conv(const Problem& problem) {
  if (const Verdict verdict = is_contiguous(problem); !verdict.supported) return verdict;
  return supports_modest_windows(problem);
}

}  // namespace xpuruntime::cpu
