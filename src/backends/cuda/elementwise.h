#pragma once

#include <cstdint>
#include <initializer_list>

#include "backends/cuda/launch.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cuda {

/// What bytes are moved in, the largest first.
inline constexpr int unit_sizes[] = {16, 8, 4, 2, 1};

inline std::int64_t bytes_of(const TensorSpec& spec, std::int64_t elements) {
  return elements * static_cast<std::int64_t>(size_of(spec.dtype));
}

/// The output's dims with each operand's strides (0 where it is broadcast), the output's smallest stride last; dims
/// that every operand walks with one stride have become one. Of one input, `strides[1]` stays 0. Says nothing of
/// `contiguous`. With `row_major` the dims stay in their order. Strides of a third input go to `third`, which has 8.
ElementwiseShape joint_shape(std::initializer_list<const TensorSpec*> inputs, const TensorSpec& output,
                             bool row_major = false, std::int64_t* third = nullptr);
/// Of one input or two.
ElementwiseShape shape_of(const Problem& problem);

/// Whether as many elements at a time as 16 bytes hold of `dtype`, the widest, meet what belongs together in every
/// operand: neighbours, or in inputs one value for all.
bool has_vectors(const ElementwiseShape& shape, const Problem& problem, DataType dtype,
                 const std::int64_t* third = nullptr);

/// Whether all tensors, the inputs and the first output, are one run of memory each that begins on a multiple of 16.
bool is_aligned_run(const ElementwiseShape& shape, const Problem& problem);

}  // namespace xpuruntime::cuda
