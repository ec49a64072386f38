#pragma once

#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {

/// A dense tensor as [outer, length, inner]: its lines go along the middle.
struct Lines {
  std::int64_t outer = 1;
  std::int64_t length = 1;
  std::int64_t inner = 1;

  std::int64_t count() const { return outer * inner; }
};

/// Along one dim, counted from either end.
Lines lines_along(const Dims& shape, std::int64_t dim);
/// The same of a tensor whose dims may be in any order in memory, without gaps.
Lines lines_along(const TensorSpec& spec, std::int64_t dim);
/// Along the last `count` dims together.
Lines lines_along_last(const Dims& shape, std::int64_t count);

/// Contiguous tensors, the first output of the first input's dtype; backward the gradient too.
Verdict supports_lines(const Problem& problem);
/// The same, but for what all tensors have alike: the order of their dims in memory, without gaps.
Verdict supports_lines_in_any_order(const Problem& problem);

/// How many lines make a thread worth waking, where one element takes about `picoseconds`.
std::int64_t lines_per_thread(std::int64_t length, std::int64_t picoseconds);

}  // namespace xpuruntime::cpu
