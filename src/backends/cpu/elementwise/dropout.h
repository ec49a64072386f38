#pragma once

#include <cstdint>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// What dropout needs to know of one call. Element i is kept if word (i + offset) % 4 of counter (i + offset) / 4
/// is at least `threshold`.
struct DropoutCall {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  std::uint64_t threshold = 0;  // up to 2^32: nothing is kept
  double kept_share = 1;        // 1 - p: kept elements are divided by it
};

/// Reads the second input, seed and offset, where there is one.
DropoutCall dropout_call(const Problem& problem, const RunArguments& arguments);

}  // namespace xpuruntime::cpu
