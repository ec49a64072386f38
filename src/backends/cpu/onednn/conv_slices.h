#pragma once

#include <vector>

#include "backends/cpu/conv/shape.h"

namespace xpuruntime::cpu {

/// The part of a convolution that one task computes.
struct ConvSlice {
  std::int64_t image = 0, images = 0;
  std::int64_t group = 0, groups = 0;
  std::int64_t channel = 0, channels = 0;  // output channels of each group
  std::int64_t row = 0, rows = 0;          // along the first spatial dim of the output

  bool operator==(const ConvSlice&) const = default;
};

/// The input rows that output rows are made of, and what of them is padding; rows left over at the end are negative
/// padding.
struct InputRows {
  std::int64_t row = 0, rows = 0;
  std::int64_t padding_before = 0, padding_after = 0;
};

/// `axis` is the first spatial dim: 0 for conv3d, 1 for conv2d.
InputRows input_rows(const ConvShape& shape, std::size_t axis, std::int64_t row, std::int64_t rows);

/// At most `parts` slices of like size. Each converts its own input and weight to oneDNN's layout, so the cut goes
/// where little is converted twice.
/// Whole pixels are those of all channels, as they lie together in memory where the channels are last.
std::vector<ConvSlice> split_conv(const ConvShape& shape, std::size_t axis, std::int64_t parts, bool whole_pixels);

}  // namespace xpuruntime::cpu
