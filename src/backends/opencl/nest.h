#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime::opencl {

/// Tensors of one nest; the kernels have names for the places (kernels/lines.cl).
inline constexpr std::size_t nest_tensors = 5;
using NestStrides = std::array<Dims, nest_tensors>;  // empty: does not move

/// Where the elements of a few tensors lie, over one set of extents. The same struct stands in kernels/vectors.cl; all
/// of it is 64-bit words. The innermost dim comes first, so that kernels know its place whatever the rank.
struct Nest {
  std::int64_t rank = 1;
  std::int64_t count = 1;  // product of the extents
  std::int64_t extent[max_rank] = {1};
  std::int64_t stride[nest_tensors][max_rank] = {};

  std::int64_t last_extent() const { return extent[0]; }
  std::int64_t last_stride(std::size_t tensor) const { return stride[tensor][0]; }
};
static_assert(sizeof(Nest) == 8 * (2 + max_rank + nest_tensors * max_rank));

/// Extents of 1 are left out, and neighbours merged that all tensors walk through in one stride.
Nest make_nest(const Dims& extents, const NestStrides& strides);

/// The build option of a kernel that looks up places in these: few classes of ranks, so that few programs are built.
std::string dims_option(std::initializer_list<const Nest*> nests);

/// A tensor's dims in two: `mask` has a bit for each dim of the first part.
struct SplitNest {
  Nest across = {};
  Nest along = {};
};
SplitNest split_nest(const Dims& shape, unsigned along, const NestStrides& strides);

/// The bit of a dim that counts from either end.
unsigned dim_bit(std::int64_t dim, std::size_t rank);

}  // namespace xpuruntime::opencl
