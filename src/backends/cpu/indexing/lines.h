#pragma once

#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// The lines of a tensor along a dim: where they start, and how far apart their elements are.
struct LinesOf {
  LinesOf(const TensorSpec& spec, std::int64_t dim) : across(spec) {
    if (spec.shape.empty()) return;
    const auto d = static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(spec.shape.size()) : dim);
    length = spec.shape[d];
    stride = spec.strides[d];
    across.shape[d] = 1;
  }

  TensorSpec across;  // one element of each line
  std::int64_t length = 1;
  std::int64_t stride = 0;
};

}  // namespace xpuruntime::cpu
