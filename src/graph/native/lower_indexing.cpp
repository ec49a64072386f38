#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Operators that read or write where indices say.

namespace xpuruntime::native {
namespace {

Slots gather_elements(const NodeCall& call) {
  Attributes attributes(OpId::gather_elements);
  attributes.set("dim", call.integer("axis", 0));
  return {call.builder.call(OpId::gather_elements, {call[0], call[1]}, &attributes)};
}

Slots gather_nd(const NodeCall& call) {
  Attributes attributes(OpId::gather_nd);
  attributes.set("batch_dims", call.integer("batch_dims", 0));
  return {call.builder.call(OpId::gather_nd, {call[0], call[1]}, &attributes)};
}

template <OpId op>
Slots scatter(const NodeCall& call) {
  Attributes attributes(op);
  attributes.set_choice("reduction", call.text("reduction", "none"));
  if (op == OpId::scatter_elements) attributes.set("dim", call.integer("axis", 0));
  return {call.builder.call(op, {call[0], call[1], call[2]}, &attributes)};
}

Slots one_hot(const NodeCall& call) {
  Attributes attributes(OpId::one_hot);
  attributes.set("depth", call.number(1)).set("dim", call.integer("axis", -1));
  const int indices = is_floating(call.dtype(0)) ? Calls{call.builder}.cast(call[0], DataType::int64) : call[0];
  return {call.builder.call(OpId::one_hot, {indices, call[2]}, &attributes)};
}

/// 1 at the first of the largest elements. Before opset 13 all dims from the axis on are one.
Slots hardmax(const NodeCall& call) {
  const Dims shape = call.shape(0);
  Builder& builder = call.builder;
  const bool is_flat = call.opset < 13;
  const std::size_t axis = call.axis(call.integer("axis", is_flat ? 1 : -1), shape.size());
  int x = call[0];
  std::int64_t dim = static_cast<std::int64_t>(axis);
  if (is_flat) {
    Dims rows = {1, 1};
    for (std::size_t d = 0; d < shape.size(); ++d) rows[d < axis ? 0 : 1] *= shape[d];
    x = builder.reshaped(x, rows);
    dim = 1;
  }
  const Dims from = builder.shape(x);
  Attributes largest(OpId::arg_max), hot(OpId::one_hot);
  largest.set("dim", dim);
  hot.set("depth", from.empty() ? 1 : from[static_cast<std::size_t>(dim)]).set("dim", dim);
  const Tensor values = Tensor::empty(call.dtype(0), {2});
  for (const std::int64_t i : {0, 1}) storer_of(call.dtype(0))(values.data(), i, static_cast<double>(i));
  const int place = builder.call(OpId::arg_max, {x}, &largest);
  return {builder.reshaped(builder.call(OpId::one_hot, {place, builder.constant(values)}, &hot), shape)};
}

Slots reverse_sequence(const NodeCall& call) {
  Attributes attributes(OpId::reverse_sequence);
  attributes.set("batch_dim", call.integer("batch_axis", 1)).set("time_dim", call.integer("time_axis", 0));
  return {call.builder.call(OpId::reverse_sequence, {call[0], call[1]}, &attributes)};
}

constexpr Operator indexing_rows[] = {
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"Scatter", scatter<OpId::scatter_elements>},
    {"ScatterElements", scatter<OpId::scatter_elements>},
    {"ScatterND", scatter<OpId::scatter_nd>},
    {"OneHot", one_hot},
    {"Hardmax", hardmax},
    {"ReverseSequence", reverse_sequence},
};

}  // namespace

std::span<const Operator> indexing_operators() { return indexing_rows; }

}  // namespace xpuruntime::native
