#pragma once

#include <optional>

#include "core/windows.h"
#include "xpuruntime/core/tensor.h"

// What convolutions and pools share: windows that move over up to three spatial dims.

namespace xpuruntime::cpu {

/// Strides of a tensor [a, b, (depth,) height, width].
struct Layout {
  std::int64_t first = 0, second = 0;
  Extents spatial = {0, 0, 0};

  explicit Layout(const TensorSpec& spec) : first(spec.strides[0]), second(spec.strides[1]) {
    spread(spec.strides, spatial, 2);
  }
  std::int64_t offset(std::int64_t a, std::int64_t b, const Extents& at) const {
    return a * first + b * second + at[0] * spatial[0] + at[1] * spatial[1] + at[2] * spatial[2];
  }
};

template <class Body>
void for_each_position(const Extents& extents, const Body& body) {
  Extents at;
  for (at[0] = 0; at[0] < extents[0]; ++at[0]) {
    for (at[1] = 0; at[1] < extents[1]; ++at[1]) {
      for (at[2] = 0; at[2] < extents[2]; ++at[2]) body(at);
    }
  }
}

/// What the tap of a shape's window at `at` lies on; nothing where that is padding.
template <class Shape>
std::optional<Extents> met_by(const Shape& shape, const Extents& at, const Extents& tap) {
  Extents from;
  for (std::size_t i = 0; i < 3; ++i) {
    from[i] = at[i] * shape.stride[i] + tap[i] * shape.dilation[i] - shape.padding[i];
    if (from[i] < 0 || from[i] >= shape.in[i]) return std::nullopt;
  }
  return from;
}

}  // namespace xpuruntime::cpu
