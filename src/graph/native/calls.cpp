#include "graph/native/calls.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace xpuruntime::native {

int Calls::joined(std::span<const int> parts, std::int64_t dim) const {
  constexpr std::size_t most = 64;  // inputs of one call
  std::vector<int> left(parts.begin(), parts.end());
  while (left.size() > 1) {
    std::vector<int> joined;
    for (std::size_t i = 0; i < left.size(); i += most) {
      joined.push_back(concat(std::span(left).subspan(i, std::min(most, left.size() - i)), dim));
    }
    left = std::move(joined);
  }
  return left.at(0);
}

int Calls::padded(int a, std::size_t dim, std::int64_t before, std::int64_t after, double value) const {
  const auto rank = builder.shape(a).size();
  if (rank - dim <= max_rank / 2 && builder.has_kernel(OpId::pad)) {
    std::vector<std::int64_t> pads(2 * (rank - dim), 0);
    pads[pads.size() - 2] = before;
    pads.back() = after;
    Attributes attributes(OpId::pad);
    return builder.call(OpId::pad, {a, number(value, a)}, &attributes.set_list("pads", pads));
  }
  std::vector<int> parts;
  const auto fill = [&](std::int64_t extent) {
    if (extent == 0) return;
    Dims shape = builder.shape(a);
    shape[dim] = extent;
    parts.push_back(builder.contiguous(builder.broadcast(number(value, a), shape)));
  };
  fill(before);
  parts.push_back(a);
  fill(after);
  return concat(parts, static_cast<std::int64_t>(dim));
}

int Calls::flipped(int a, std::size_t dim) const {
  const std::int64_t extent = builder.shape(a)[dim];
  if (extent < 2) return a;
  if (builder.has_kernel(OpId::flip)) {
    Attributes attributes(OpId::flip);
    return builder.call(OpId::flip, {a}, &attributes.set("dims", static_cast<std::int64_t>(dim)));
  }
  std::vector<std::int64_t> backwards(static_cast<std::size_t>(extent));
  std::iota(backwards.rbegin(), backwards.rend(), std::int64_t{0});
  return gathered(a, dim, builder.integers(backwards));
}

/// Without a kernel, rows of a table, which has two dims: the axis is turned to the front and back.
int Calls::gathered(int a, std::size_t axis, int index) const {
  if (builder.has_kernel(OpId::gather)) {
    Attributes attributes(OpId::gather);
    return builder.call(OpId::gather, {a, index}, &attributes.set("dim", static_cast<std::int64_t>(axis)));
  }
  const Dims data = builder.shape(a), index_shape = builder.shape(index);
  std::vector<std::int64_t> to_front = {static_cast<std::int64_t>(axis)}, kept;
  for (std::size_t d = 0; d < data.size(); ++d) {
    if (d != axis) to_front.push_back(static_cast<std::int64_t>(d)), kept.push_back(data[d]);
  }
  const std::int64_t width = std::accumulate(kept.begin(), kept.end(), std::int64_t{1}, std::multiplies<>());
  const int table = builder.reshaped(permuted(a, to_front), {data[axis], width});
  std::vector<std::int64_t> shape(index_shape.begin(), index_shape.end());
  shape.insert(shape.end(), kept.begin(), kept.end());
  const int rows = builder.reshaped(builder.call(OpId::embedding, {index, table}), Dims(std::span(shape)));
  std::vector<std::int64_t> back;
  const auto taken = static_cast<std::int64_t>(index_shape.size());
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(axis); ++d) back.push_back(taken + d);
  for (std::int64_t d = 0; d < taken; ++d) back.push_back(d);
  for (auto d = taken + static_cast<std::int64_t>(axis); d < static_cast<std::int64_t>(shape.size()); ++d)
    back.push_back(d);
  return permuted(rows, back);
}

/// Without a kernel, a reduction of both.
int Calls::extreme(OpId op, int a, int b) const {
  if (has(op)) return builder.call(op, {a, b});
  const Dims shape = broadcast_shapes(builder.shape(a), builder.shape(b));
  const Dims flat = {1, checked_count(shape, 1)};
  const int parts[] = {builder.reshaped(builder.broadcast(a, shape), flat),
                       builder.reshaped(builder.broadcast(b, shape), flat)};
  if (flat[1] == 0) return builder.reshaped(parts[0], shape);
  const std::int64_t dims[] = {0};
  return builder.reshaped(
      reduce(op == OpId::maximum ? OpId::reduce_max : OpId::reduce_min, concat(parts, 0), dims, false), shape);
}

}  // namespace xpuruntime::native
