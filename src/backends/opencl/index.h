#pragma once

#include <cstdint>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime::opencl {

/// Where the elements of up to three tensors lie, over one set of extents. The same struct stands in
/// kernels/common.cl; all of it is 64-bit words, so that every compiler lays it out alike.
struct Index {
  std::int64_t count = 1;  // product of the extents
  std::int64_t extent[max_rank] = {};
  std::int64_t stride[3][max_rank] = {};  // in elements: a, b, c; zero where a tensor is repeated
};
static_assert(sizeof(Index) == 8 * (1 + 4 * max_rank));

struct RankedIndex {
  Index index = {};
  int rank = 1;  // a build option, not an argument
};

/// Extents of 1 are left out and neighbours that all tensors walk through in one stride are merged: fewer divisions in
/// the kernel, and contiguous tensors always have rank 1.
RankedIndex make_index(const Dims& extents, const Dims& a, const Dims& b, const Dims& c);

/// The strides by which a tensor is read as one of a larger `shape`: zero where it is repeated.
Dims broadcast_strides(const Dims& shape, const Dims& tensor_shape, const Dims& tensor_strides);

}  // namespace xpuruntime::opencl
