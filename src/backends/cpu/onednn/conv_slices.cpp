#include "backends/cpu/onednn/conv_slices.h"

#include <algorithm>

namespace xpuruntime::cpu {
namespace {

// Whole blocks of every layout that oneDNN uses.
constexpr std::int64_t channel_unit = 64;

/// How many of each a slice has; only the last one of each kind may have fewer.
struct Lengths {
  std::int64_t images, groups, channels, rows;
};

std::int64_t part_length(std::int64_t extent, std::int64_t parts, std::int64_t unit) {
  return std::min(extent, round_up(divide_up(extent, parts), unit));
}

/// Cutting channels converts the input in each slice, cutting images and rows the weight.
bool should_cut_channels(const ConvShape& shape) {
  const std::int64_t weight = shape.out_channels * shape.depth();
  const std::int64_t input = shape.batch * shape.in_channels * volume(shape.in);
  return shape.out_channels >= 2 * channel_unit && weight > input;
}

Lengths slice_lengths(const ConvShape& shape, std::size_t axis, std::int64_t parts, bool whole_pixels) {
  Lengths lengths = {shape.batch, shape.groups, shape.out_channels, shape.out[axis]};
  if (!whole_pixels && shape.groups >= parts) {
    const bool depthwise = shape.out_channels == 1;
    lengths.groups = part_length(shape.groups, parts, depthwise && shape.groups >= 16 * parts ? 16 : 1);
  } else if (!whole_pixels && shape.groups == 1 && should_cut_channels(shape)) {
    lengths.channels = part_length(shape.out_channels, parts, channel_unit);
  } else {
    const std::int64_t image_parts = std::min(parts, shape.batch);
    lengths.images = part_length(shape.batch, image_parts, 1);
    lengths.rows = part_length(shape.out[axis], divide_up(parts, image_parts), 1);
  }
  return lengths;
}

}  // namespace

InputRows input_rows(const ConvShape& shape, std::size_t axis, std::int64_t row, std::int64_t rows) {
  const std::int64_t first = row * shape.stride[axis] - shape.padding[axis];
  const std::int64_t reach = (shape.kernel[axis] - 1) * shape.dilation[axis];
  const std::int64_t end = first + (rows - 1) * shape.stride[axis] + reach + 1;
  // All rows: the input as it is, though the stride may jump over its last ones.
  if (rows == shape.out[axis]) return {0, shape.in[axis], shape.padding[axis], end - shape.in[axis]};
  const std::int64_t begin_inside = std::clamp<std::int64_t>(first, 0, shape.in[axis]);
  const std::int64_t end_inside = std::clamp<std::int64_t>(end, 0, shape.in[axis]);
  return {begin_inside, end_inside - begin_inside, begin_inside - first, end - end_inside};
}

std::vector<ConvSlice> split_conv(const ConvShape& shape, std::size_t axis, std::int64_t parts, bool whole_pixels) {
  const Lengths length = slice_lengths(shape, axis, parts, whole_pixels);
  std::vector<ConvSlice> slices;
  const auto least = [](std::int64_t a, std::int64_t b) { return std::min(a, b); };
  for (std::int64_t n = 0; n < shape.batch; n += length.images) {
    for (std::int64_t g = 0; g < shape.groups; g += length.groups) {
      for (std::int64_t c = 0; c < shape.out_channels; c += length.channels) {
        for (std::int64_t r = 0; r < shape.out[axis]; r += length.rows) {
          slices.push_back({n, least(length.images, shape.batch - n), g, least(length.groups, shape.groups - g), c,
                            least(length.channels, shape.out_channels - c), r,
                            least(length.rows, shape.out[axis] - r)});
        }
      }
    }
  }
  return slices;
}

}  // namespace xpuruntime::cpu
