#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Operators along an axis: places of extremes, the largest elements, sums on the way; and triangles.

namespace xpuruntime::native {
namespace {

template <OpId op>
Slots arg(const NodeCall& call) {
  Attributes attributes(op);
  attributes.set("dim", call.integer("axis", 0))
      .set("keepdim", call.integer("keepdims", 1) != 0)
      .set("select_last_index", call.integer("select_last_index", 0) != 0);
  return {call.builder.call(op, {call[0]}, &attributes)};
}

Slots top_k(const NodeCall& call) {
  Attributes attributes(OpId::top_k);
  attributes.set("k", call.opset < 10 ? call.integer("k", 1) : call.number(1))
      .set("dim", call.integer("axis", -1))
      .set("largest", call.integer("largest", 1) != 0)
      .set("sorted", call.integer("sorted", 1) != 0);
  const int input[] = {call[0]};
  return call.builder.call_all(OpId::top_k, input, attributes);
}

Slots cumsum(const NodeCall& call) {
  Attributes attributes(OpId::cumsum);
  attributes.set("dim", call.number(1))
      .set("exclusive", call.integer("exclusive", 0) != 0)
      .set("reverse", call.integer("reverse", 0) != 0);
  return {call.builder.call(OpId::cumsum, {call[0]}, &attributes)};
}

/// Each element and so many before it: twice as many in each turn.
Slots cumprod(const NodeCall& call) {
  const Calls calls{call.builder};
  int result = call[0];
  if (call.shape(0).empty()) call.refuse("a number; it takes a list or more");
  const std::size_t axis = call.axis(call.number(1), call.shape(0).size());
  const auto dim = static_cast<std::int64_t>(axis);
  const std::int64_t extent = call.shape(0)[axis];
  const bool reverse = call.integer("reverse", 0) != 0;
  const auto moved = [&](int slot, std::int64_t by) {  // with ones behind it
    const int kept = reverse ? calls.slice(slot, dim, by, extent) : calls.slice(slot, dim, 0, extent - by);
    return calls.padded(kept, axis, reverse ? 0 : by, reverse ? by : 0, 1);
  };
  if (extent > 0 && call.integer("exclusive", 0) != 0) result = moved(result, 1);
  for (std::int64_t by = 1; by < extent; by *= 2) result = calls.mul(result, moved(result, by));
  return {result};
}

Slots trilu(const NodeCall& call) {
  Attributes attributes(OpId::trilu);
  attributes.set("diagonal", call.has(1) ? call.number(1) : 0).set("upper", call.integer("upper", 1) != 0);
  return {call.builder.call(OpId::trilu, {call[0]}, &attributes)};
}

constexpr Operator choosing_rows[] = {
    {"ArgMax", arg<OpId::arg_max>},
    {"ArgMin", arg<OpId::arg_min>},
    {"TopK", top_k},
    {"CumSum", cumsum},
    {"CumProd", cumprod},
    {"Trilu", trilu},
};

}  // namespace

std::span<const Operator> choosing_operators() { return choosing_rows; }

}  // namespace xpuruntime::native
