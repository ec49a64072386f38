#pragma once

#include "backends/cpu/base/windows.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {

/// A convolution read once from its problem; conv2d is a conv3d of depth 1. Channels are those of one group.
struct ConvShape {
  std::int64_t batch = 0;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Extents in = {1, 1, 1};
  Extents kernel = {1, 1, 1};
  Extents out = {1, 1, 1};
  Extents stride = {1, 1, 1};
  Extents padding = {0, 0, 0};
  Extents dilation = {1, 1, 1};

  std::int64_t taps() const { return volume(kernel); }
  /// How many products an output element sums.
  std::int64_t depth() const { return in_channels * taps(); }
  bool empty() const { return batch * groups * out_channels * volume(out) == 0; }
  /// 1x1 with stride 1 and no padding: a plain matrix product.
  bool pointwise() const;
};

ConvShape conv_shape(const Problem& problem);

/// Whether it takes more than some tens of microseconds, so that several threads pay.
bool conv_is_large(const ConvShape& shape);
/// The threads that pay for this much work.
int conv_threads(const Problem& problem, const ConvShape& shape);

/// Refuses windows whose numbers could overflow the arithmetic of offsets; only the reference takes such.
Verdict supports_modest_windows(const Problem& problem);

/// Refuses matrices of columns that are empty or whose sides are past 31 bits.
Verdict supports_conv_columns(const ConvShape& shape);

/// What the fast kernels ask in common: contiguous f32, f16 or bf16, and modest windows.
Verdict supports_fast_conv(const Problem& problem);

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace xpuruntime::cpu
