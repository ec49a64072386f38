#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace xpuruntime {

struct Problem;

/// Depth, height, width. What has two spatial dims has a depth of 1.
using Extents = std::array<std::int64_t, 3>;

inline std::int64_t volume(const Extents& extents) { return extents[0] * extents[1] * extents[2]; }

/// Right-aligned: of two values the first is the height.
template <class Values>
void spread(const Values& values, Extents& to, std::size_t skipped = 0) {
  for (std::size_t i = skipped; i < values.size(); ++i) to[i + 3 - values.size()] = values[i];
}

/// How the windows of a convolution or a pool move over an image. Plain data: it is also a kernel parameter.
struct Windows {
  Extents in = {1, 1, 1};
  Extents kernel = {1, 1, 1};
  Extents out = {1, 1, 1};
  Extents stride = {1, 1, 1};
  Extents padding = {0, 0, 0};
  Extents dilation = {1, 1, 1};
};

/// A convolution read once from its problem. Channels are those of one group.
struct ConvShape : Windows {
  std::int64_t batch = 0;
  std::int64_t groups = 1;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;

  std::int64_t taps() const { return volume(kernel); }
  std::int64_t pixels() const { return volume(out); }
  /// How many products an output element sums.
  std::int64_t depth() const { return in_channels * taps(); }
  bool empty() const { return batch * groups * out_channels * pixels() == 0; }
  /// 1x1 with stride 1 and no padding: a plain matrix product.
  bool pointwise() const { return taps() == 1 && stride == Extents{1, 1, 1} && padding == Extents{0, 0, 0}; }
  /// Of kernel size, stride, padding and dilation: offsets are computed from them.
  std::int64_t largest_number() const;
};

ConvShape conv_shape(const Problem& problem);
Windows pool_windows(const Problem& problem);

}  // namespace xpuruntime
