#pragma once

#include "backends/cuda/launch.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cuda {

/// The output's dims with each operand's strides (0 where it is broadcast); dims that every operand walks with one
/// stride have become one. `strides[1]` stays 0 where there is one input.
ElementwiseShape elementwise_shape(const Problem& problem);

}  // namespace xpuruntime::cuda
