#include "backends/opencl/nest.h"

#include <algorithm>

#include "xpuruntime/core/error.h"

namespace xpuruntime::opencl {
namespace {

std::int64_t stride_at(const Dims& strides, std::size_t d) { return strides.empty() ? 0 : strides[d]; }

bool nest_continues(const Nest& nest, std::size_t last, std::int64_t extent, const NestStrides& strides,
                    std::size_t d) {
  for (std::size_t t = 0; t < nest_tensors; ++t)
    if (nest.stride[t][last] != stride_at(strides[t], d) * extent) return false;
  return true;
}

/// The numbers of some dims.
Dims picked(const Dims& from, unsigned mask) {
  std::int64_t values[max_rank] = {};
  std::size_t size = 0;
  for (std::size_t d = 0; d < from.size(); ++d)
    if ((mask >> d & 1) != 0) values[size++] = from[d];
  return Dims(std::span<const std::int64_t>(values, size));
}

NestStrides picked(const NestStrides& from, unsigned mask) {
  NestStrides out;
  for (std::size_t t = 0; t < nest_tensors; ++t) out[t] = picked(from[t], mask);
  return out;
}

}  // namespace

Nest make_nest(const Dims& extents, const NestStrides& strides) {
  Nest nest;
  std::size_t used = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    nest.count *= extents[d];
    if (extents[d] == 1) continue;
    const bool merged = used > 0 && nest_continues(nest, used - 1, extents[d], strides, d);
    if (!merged) ++used;
    nest.extent[used - 1] = merged ? nest.extent[used - 1] * extents[d] : extents[d];
    for (std::size_t t = 0; t < nest_tensors; ++t) nest.stride[t][used - 1] = stride_at(strides[t], d);
  }
  nest.rank = used == 0 ? 1 : static_cast<std::int64_t>(used);
  std::reverse(nest.extent, nest.extent + nest.rank);
  for (auto& of_tensor : nest.stride) std::reverse(of_tensor, of_tensor + nest.rank);
  return nest;
}

std::string dims_option(std::initializer_list<const Nest*> nests) {
  constexpr std::int64_t usual = 3;
  const bool few = std::all_of(nests.begin(), nests.end(), [](const Nest* nest) { return nest->rank <= usual; });
  return " -D DIMS=" + std::to_string(few ? usual : static_cast<std::int64_t>(max_rank));
}

SplitNest split_nest(const Dims& shape, unsigned along, const NestStrides& strides) {
  return {make_nest(picked(shape, ~along), picked(strides, ~along)),
          make_nest(picked(shape, along), picked(strides, along))};
}

unsigned dim_bit(std::int64_t dim, std::size_t rank) {
  return 1U << (dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim);
}

}  // namespace xpuruntime::opencl
