#pragma once

#include "backends/cuda/launch.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cuda {

/// What a problem of matmul or linear asks for beyond the sums.
Finish finish_of(const Problem& problem);

/// The third input with the output's shape, its strides 0 where it is broadcast.
TensorSpec broadcast_c(const Problem& problem);

/// The launch that finishes sums of this dtype.
FinishLaunch finish_launch(const Problem& problem, DataType sums, bool in_place);

}  // namespace xpuruntime::cuda
