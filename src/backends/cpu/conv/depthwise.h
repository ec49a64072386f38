#pragma once

#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::cpu {

/// One depth slice of one output channel of a depthwise convolution, read from a channel's copy in phases.
struct DepthwisePlane {
  const float* inputs = nullptr;          // of position 0
  std::int64_t row = 0;                   // of the copy
  const std::int64_t* offsets = nullptr;  // by tap
  const float* weights = nullptr;         // by tap
  std::int64_t taps = 0;
  float bias = 0;
  std::int64_t height = 0, width = 0;  // of the output
  void* out = nullptr;
};

void run_depthwise_plane(const DepthwisePlane& plane, DataType out);

}  // namespace xpuruntime::cpu
