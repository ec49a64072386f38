#pragma once

#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// A tensor as [outer, slices, inner], where a scale stands for a slice, or for `block` slices in line. One scale for
/// everything: one slice.
struct QuantizedLayout {
  explicit QuantizedLayout(const Problem& problem) {
    const TensorSpec& x = problem.inputs[0];
    block = problem.attributes.integer("block_size");
    if (block == 0 && element_count(problem.inputs[1]) == 1) {
      inner = element_count(x);
      return;
    }
    const auto rank = static_cast<std::int64_t>(x.shape.size());
    const std::int64_t given = problem.attributes.integer("dim"), dim = given < 0 ? given + rank : given;
    for (std::int64_t d = 0; d < rank; ++d) {
      const std::int64_t extent = x.shape[static_cast<std::size_t>(d)];
      (d < dim ? outer : d == dim ? slices : inner) *= extent;
    }
    by_slice = true;
  }

  /// Which scale an element has, counted as its scales lie one after the other.
  std::int64_t scale_of(std::int64_t element) const {
    if (!by_slice) return 0;
    const std::int64_t slice = element / inner % slices;
    if (block == 0) return slice;
    const std::int64_t blocks = slices / block + (slices % block != 0 ? 1 : 0);
    return (element / inner / slices * blocks + slice / block) * inner + element % inner;
  }

  std::int64_t outer = 1, slices = 1, inner = 1;
  std::int64_t block = 0;  // 0: a scale is of a slice
  bool by_slice = false;
};

}  // namespace xpuruntime::cpu
