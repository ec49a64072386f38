#pragma once

#include <optional>

#include "backends/cpu/conv/shape.h"

// What the references of both directions walk over.

namespace xpuruntime::cpu {

/// Strides of a tensor [a, b, (depth,) height, width].
struct Layout {
  std::int64_t first = 0, second = 0;
  Extents spatial = {0, 0, 0};

  explicit Layout(const TensorSpec& spec) : first(spec.strides[0]), second(spec.strides[1]) {
    const std::size_t rank = spec.shape.size();
    for (std::size_t i = 2; i < rank; ++i) spatial[i + 3 - rank] = spec.strides[i];
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

/// What the tap of the window at `at` lies on; nothing where that is padding.
inline std::optional<Extents> met_by(const ConvShape& shape, const Extents& at, const Extents& tap) {
  Extents from;
  for (std::size_t i = 0; i < 3; ++i) {
    from[i] = at[i] * shape.stride[i] + tap[i] * shape.dilation[i] - shape.padding[i];
    if (from[i] < 0 || from[i] >= shape.in[i]) return std::nullopt;
  }
  return from;
}

}  // namespace xpuruntime::cpu
