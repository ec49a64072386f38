#pragma once

#include <initializer_list>

#include "backends/cuda/launch.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cuda {

/// The output's dims with each operand's strides (0 where it is broadcast), the output's smallest stride last; dims
/// that every operand walks with one stride have become one. Of one input, `strides[1]` stays 0. Says nothing of
/// `contiguous`. With `row_major` the dims stay in their order.
ElementwiseShape joint_shape(std::initializer_list<const TensorSpec*> inputs, const TensorSpec& output,
                             bool row_major = false);

/// Whether all tensors, the inputs and the first output, are one run of memory each that begins on a multiple of 16.
bool is_aligned_run(const ElementwiseShape& shape, const Problem& problem);

}  // namespace xpuruntime::cuda
