#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/lowering.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {
namespace {

Slots transpose(const NodeCall& call) {
  const std::size_t rank = call.shape(0).size();
  std::vector<std::int64_t> reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), std::int64_t{0});
  return {Calls{call.builder}.permuted(call[0], call.list("perm").value_or(reversed))};
}

Slots concat(const NodeCall& call) {
  Slots parts = {call[0]};
  for (std::size_t i = 1; i < call.size(); ++i) parts.push_back(call[i]);
  return {Calls{call.builder}.joined(parts, call.integer("axis", 0))};
}

/// From the start down to the end, which is left out; both from the back where negative, then held inside: a start
/// before the first element is the first, as ONNX has it.
int sliced_backwards(const NodeCall& call, int slot, std::int64_t dim, std::int64_t start, std::int64_t end,
                     std::int64_t step) {
  const Dims shape = call.builder.shape(slot);
  const std::size_t axis = call.axis(dim, shape.size());
  const std::int64_t extent = shape[axis];
  if (step == 0) call.wrong("a step of 0");
  const auto held = [&](std::int64_t at, std::int64_t least) {
    return std::clamp<std::int64_t>(at < -extent ? least : at < 0 ? at + extent : at, least, extent - 1);
  };
  const Calls calls{call.builder};
  if (extent == 0) return slot;
  const std::int64_t first = held(start, 0), stop = held(end, -1), back = -std::max(step, -extent - 1);
  if (first <= stop) return calls.slice(slot, dim, 0, 0);
  const std::int64_t last = first - (first - stop - 1) / back * back;
  const bool is_whole = last == 0 && first == extent - 1 && back == 1;
  return calls.flipped(is_whole ? slot : calls.slice(slot, dim, last, first + 1, back), axis);
}

/// One slice for each axis.
Slots slice(const NodeCall& call) {
  using Values = std::vector<std::int64_t>;
  const Values starts = call.values_or_list(1, "starts").value_or(Values{});
  const Values ends = call.values_or_list(2, "ends").value_or(Values{});
  Values axes(starts.size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  axes = call.values_or_list(3, "axes").value_or(axes);
  const auto steps = call.has(4) ? call.values(4) : std::vector<std::int64_t>(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    call.wrong("starts, ends, axes and steps of different lengths");
  }
  std::set<std::size_t> seen;
  for (const std::int64_t axis : axes) {
    if (!seen.insert(call.axis(axis, call.shape(0).size())).second)
      call.wrong("axis " + std::to_string(axis) + " twice");
  }
  int result = call[0];
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] < 1) {
      result = sliced_backwards(call, result, axes[i], starts[i], ends[i], steps[i]);
      continue;
    }
    const bool is_whole =
        starts[i] == 0 && steps[i] == 1 && ends[i] >= call.shape(0)[call.axis(axes[i], call.shape(0).size())];
    if (!is_whole) result = Calls{call.builder}.slice(result, axes[i], starts[i], ends[i], steps[i]);
  }
  return {result};
}

Slots split(const NodeCall& call) {
  const std::int64_t dim = call.integer("axis", 0);
  const std::int64_t extent = call.shape(0)[call.axis(dim, call.shape(0).size())];
  const auto count = static_cast<std::int64_t>(call.node().outputs.size());
  auto sizes = call.values_or_list(1, "split");
  if (!sizes) {
    const std::int64_t even = count == 0 ? 0 : (extent + count - 1) / count;
    sizes.emplace();
    for (std::int64_t i = 0; i < count; ++i) sizes->push_back(std::clamp<std::int64_t>(extent - i * even, 0, even));
  }
  const bool is_negative = std::any_of(sizes->begin(), sizes->end(), [](std::int64_t size) { return size < 0; });
  const bool is_large = std::any_of(sizes->begin(), sizes->end(), [&](std::int64_t size) { return size > extent; });
  if (static_cast<std::int64_t>(sizes->size()) != count || is_negative || is_large ||
      std::accumulate(sizes->begin(), sizes->end(), std::int64_t{0}) != extent) {
    call.wrong("parts that do not add up to the extent " + std::to_string(extent));
  }
  Slots parts;
  std::int64_t start = 0;
  for (const std::int64_t size : *sizes) {
    parts.push_back(Calls{call.builder}.slice(call[0], dim, start, start + size));
    start += size;
  }
  return parts;
}

/// Indices that are known, from the front of an axis of `extent`.
std::optional<std::vector<std::int64_t>> known_indices(const NodeCall& call, std::int64_t extent) {
  if (!call.builder.is_constant(call[1])) return {};
  const Tensor& tensor = call.builder.constant_of(call.builder.contiguous(call[1]));
  const LoadInteger load = integer_loader_of(tensor.dtype());
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) {
    const std::int64_t index = load(tensor.as<const void>(), i);
    if (index < -extent || index >= extent) {
      fail(ErrorCode::invalid_argument, "Session",
           "index " + std::to_string(index) + " is outside an axis of " + std::to_string(extent) +
               "; give inputs that fit");
    }
    indices.push_back(index < 0 ? index + extent : index);
  }
  return indices;
}

Slots gather(const NodeCall& call) {
  Builder& builder = call.builder;
  const Dims data = call.shape(0), index_shape = call.shape(1);
  const std::size_t axis = call.axis(call.integer("axis", 0), data.size());
  int index = call[1];
  if (const auto known = known_indices(call, data[axis])) {
    if (known->size() == 1) {  // one slice
      const auto dim = static_cast<std::int64_t>(axis);
      std::vector<std::int64_t> shape(data.begin(), data.begin() + dim);
      shape.insert(shape.end(), index_shape.begin(), index_shape.end());
      shape.insert(shape.end(), data.begin() + dim + 1, data.end());
      if (shape.size() > max_rank) call.lacks("a result with more than 8 dims");
      return {
          builder.reshaped(Calls{builder}.slice(call[0], dim, (*known)[0], (*known)[0] + 1), Dims(std::span(shape)))};
    }
    index = builder.reshaped(builder.integers(*known), index_shape);
  }
  if (index_shape.size() + data.size() > max_rank + 1) call.lacks("a result with more than 8 dims");
  return {Calls{builder}.gathered(call[0], axis, index)};
}

/// Each dim beside one that is repeated.
Slots tile(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const std::vector<std::int64_t> repeats = call.values(1);
  if (repeats.size() != shape.size()) call.wrong("repeats of another length than the dims");
  if (call.builder.has_kernel(OpId::tile)) {
    Attributes attributes(OpId::tile);
    return {call.builder.call(OpId::tile, {call[0]}, &attributes.set_list("repeats", repeats))};
  }
  int result = call[0];
  for (std::size_t d = 0; d < shape.size(); ++d) {  // the last first: what is joined is neighbours
    if (repeats[d] == 1) continue;
    Dims split = {1, 1, 1}, joined = call.builder.shape(result);
    for (std::size_t i = 0; i < joined.size(); ++i) split[i < d ? 0 : 2] *= joined[i];
    Dims wide = split;
    wide[1] = repeats[d];
    if (repeats[d] < 0 || __builtin_mul_overflow(joined[d], repeats[d], &joined[d])) {
      call.refuse("a number of repeats that is negative or too large");
    }
    result = call.builder.reshaped(call.builder.broadcast(call.builder.reshaped(result, split), wide), joined);
  }
  return {result};
}

/// Blocks of neighbours from channels to the image, or back.
template <bool to_space>
Slots move_blocks(const NodeCall& call) {
  const Dims x = call.shape(0);
  const std::int64_t size = call.integer("blocksize", 0);
  if (x.size() != 4 || size < 1 || size > 1 << 15) call.wrong("an input that is no image, or no block size");
  Builder& builder = call.builder;
  const Calls calls{builder};
  const std::int64_t area = size * size;
  if constexpr (to_space) {
    const bool columns_first = call.text("mode", "DCR") == "CRD";
    const Dims parts = columns_first ? Dims{x[0], x[1] / area, size, size, x[2], x[3]}
                                     : Dims{x[0], size, size, x[1] / area, x[2], x[3]};
    const std::int64_t inner_last[] = {0, 1, 4, 2, 5, 3}, outer_first[] = {0, 3, 4, 1, 5, 2};
    const int turned = calls.permuted(builder.reshaped(call[0], parts), columns_first ? inner_last : outer_first);
    return {builder.reshaped(turned, {x[0], x[1] / area, x[2] * size, x[3] * size})};
  } else {
    const std::int64_t outer[] = {0, 3, 5, 1, 2, 4}, inner[] = {0, 1, 3, 5, 2, 4};
    const bool channels_first = call.text("mode", "DCR") == "CRD";
    const int parts = builder.reshaped(call[0], {x[0], x[1], x[2] / size, size, x[3] / size, size});
    return {builder.reshaped(calls.permuted(parts, channels_first ? inner : outer),
                             {x[0], x[1] * area, x[2] / size, x[3] / size})};
  }
}

constexpr Operator movement_rows[] = {
    {"Transpose", transpose},
    {"Concat", concat},
    {"Slice", slice},
    {"Split", split},
    {"Gather", gather},
    {"Tile", tile},
    {"DepthToSpace", move_blocks<true>},
    {"SpaceToDepth", move_blocks<false>},
};

}  // namespace

std::span<const Operator> movement_operators() { return movement_rows; }

}  // namespace xpuruntime::native
