#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/base/windows.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// A pool read once from its problem. A plane is a channel of an image.
struct PoolShape : Windows {
  bool average = false;
  bool count_padding = true;
  std::int64_t batch = 0, channels = 0;

  std::int64_t planes() const { return batch * channels; }
  /// How many taps along one dim an average divides by, for each output: those inside the input or, if these count,
  /// in its padding. A last window that ceil_mode adds may reach past the padding; what lies there never counts.
  std::vector<std::int64_t> counts(std::size_t axis) const;
};

PoolShape pool_shape(const Problem& problem);

}  // namespace xpuruntime::cpu
