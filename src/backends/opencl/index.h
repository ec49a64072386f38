#pragma once

#include <cstdint>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime::opencl {

/// Where the elements of up to three tensors lie, over one set of extents. The same struct stands in
/// kernels/common.cl; all of it is 64-bit words, so that every compiler lays it out alike.
struct Index {
  std::int64_t count = 1;  // product of the extents
  std::int64_t rank = 1;   // extents in use
  std::int64_t extent[max_rank] = {};
  std::int64_t stride[3][max_rank] = {};  // in elements: a, b, c; zero where a tensor is repeated
};
static_assert(sizeof(Index) == 8 * (2 + 4 * max_rank));

struct RankedIndex {
  Index index = {};
  int rank = 1;  // the index's own, for a build option where speed needs it
};

/// Extents of 1 are left out and neighbours that all tensors walk through in one stride are merged: fewer divisions in
/// the kernel, and contiguous tensors always have rank 1.
RankedIndex make_index(const Dims& extents, const Dims& a, const Dims& b, const Dims& c);

/// The rows of up to three tensors: a kernel's work-items go along them by themselves. The same struct stands in
/// kernels/common.cl.
struct Rows {
  Index index = {};  // of the rows' first elements
  std::int64_t length = 1;
  std::int64_t step[3] = {};  // from element to element: a, b, c
};

enum class Order : std::uint8_t {
  row_major,  // elements keep their numbers
  by_output,  // the dims go by the output's strides, the smallest last: neighbours in memory are in one row
};

/// The last of the merged dims is the row.
Rows make_rows(const Dims& extents, const Dims& a, const Dims& b, const Dims& c, Order order = Order::by_output);

/// The strides by which a tensor is read as one of a larger `shape`: zero where it is repeated.
Dims broadcast_strides(const Dims& shape, const Dims& tensor_shape, const Dims& tensor_strides);

}  // namespace xpuruntime::opencl
