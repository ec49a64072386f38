#pragma once

#include "graph/native/lowering.h"

namespace xpuruntime::native {

using Sizes = std::vector<std::int64_t>;

/// What ONNX says of a sliding window: one number for each dim of an image.
struct Window {
  Sizes kernel, stride, dilation, before, after;
  bool ceil = false;

  bool is_even() const { return before == after; }
};

/// From a node's attributes and the shape of its first input.
Window window_of(const NodeCall& call, const Sizes& kernel);
/// The same of a pool, which names its kernel's shape.
Window window_of_pool(const NodeCall& call);

// Pools whose windows are laid out beside each other in memory.
/// The largest and, where it is asked for, its place.
Slots max_of_patches(const NodeCall& call, const Window& window);
Slots average_of_patches(const NodeCall& call, const Window& window, bool counts_padding);

}  // namespace xpuruntime::native
