#include "backends/opencl/index.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t tensors = 3;

bool continues(const Index& index, std::size_t last, std::int64_t extent, const std::int64_t (&strides)[tensors]) {
  for (std::size_t t = 0; t < tensors; ++t)
    if (index.stride[t][last] != strides[t] * extent) return false;
  return true;
}

}  // namespace

RankedIndex make_index(const Dims& extents, const Dims& a, const Dims& b, const Dims& c) {
  Index index;
  std::size_t used = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    index.count *= extents[d];
    if (extents[d] == 1) continue;
    const std::int64_t strides[tensors] = {a[d], b[d], c[d]};
    const bool merged = used > 0 && continues(index, used - 1, extents[d], strides);
    if (!merged) ++used;
    index.extent[used - 1] = merged ? index.extent[used - 1] * extents[d] : extents[d];
    for (std::size_t t = 0; t < tensors; ++t) index.stride[t][used - 1] = strides[t];
  }
  if (used == 0) index.extent[0] = 1;
  index.rank = static_cast<std::int64_t>(std::max<std::size_t>(used, 1));
  return {index, static_cast<int>(index.rank)};
}

Rows make_rows(const Dims& extents, const Dims& a, const Dims& b, const Dims& c, Order order) {
  Dims sorted[] = {extents, a, b, c};
  if (order == Order::by_output) {
    std::vector<std::size_t> dims(extents.size());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    std::stable_sort(dims.begin(), dims.end(), [&](std::size_t x, std::size_t y) { return c[x] > c[y]; });
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const Dims* of[] = {&extents, &a, &b, &c};
      for (std::size_t t = 0; t < 4; ++t) sorted[t][i] = (*of[t])[dims[i]];
    }
  }
  Rows rows{make_index(sorted[0], sorted[1], sorted[2], sorted[3]).index};
  Index& index = rows.index;
  const auto last = static_cast<std::size_t>(index.rank - 1);
  rows.length = index.extent[last];
  for (std::size_t t = 0; t < tensors; ++t) rows.step[t] = std::exchange(index.stride[t][last], 0);
  index.extent[last] = 1;
  index.rank = std::max<std::int64_t>(index.rank - 1, 1);
  if (index.count > 0) index.count /= rows.length;
  return rows;
}

Dims broadcast_strides(const Dims& shape, const Dims& tensor_shape, const Dims& tensor_strides) {
  Dims strides = Dims::filled(shape.size(), 0);
  const std::size_t missing = shape.size() - tensor_shape.size();
  for (std::size_t d = 0; d < tensor_shape.size(); ++d)
    if (tensor_shape[d] != 1) strides[missing + d] = tensor_strides[d];
  return strides;
}

}  // namespace xpuruntime::opencl
