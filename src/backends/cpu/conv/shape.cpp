#include "backends/cpu/conv/shape.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {
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
  return is_at_most("the largest of kernel size, stride, padding and dilation", conv_shape(problem).largest_number(),
                    most);
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
