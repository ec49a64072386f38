#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/lowering.h"
#include "graph/onnx/element_type.h"

namespace xpuruntime::native {
namespace {

template <OpId op>
Slots unary(const NodeCall& call) {
  return {call.builder.call(op, {call[0]})};
}

/// Before opset 7 the dims of the second input begin at an axis of the first.
int second_operand(const NodeCall& call) {
  if (call.opset >= 7 || call.attribute("axis") == nullptr) return call[1];
  const std::size_t rank = call.shape(0).size(), axis = call.axis(call.integer("axis", 0), rank);
  const Dims& shape = call.shape(1);
  if (axis + shape.size() > rank) call.refuse("an axis from which the second input has more dims than the first");
  Dims wide = Dims::filled(rank - axis, 1);
  for (std::size_t d = 0; d < shape.size(); ++d) wide[d] = shape[d];
  return call.builder.reshaped(call[1], wide);
}

template <OpId op>
Slots binary(const NodeCall& call) {
  return {call.builder.call(op, {call[0], second_operand(call)})};
}

/// Quotients of integers are cut off.
Slots divide(const NodeCall& call) {
  return is_floating(call.dtype(0)) ? binary<OpId::div>(call) : binary<OpId::trunc_div>(call);
}

Slots negate(const NodeCall& call) { return {Calls{call.builder}.negative(call[0])}; }
Slots absolute(const NodeCall& call) { return {Calls{call.builder}.absolute(call[0])}; }

Slots invert(const NodeCall& call) {
  const Calls calls{call.builder};
  if (calls.has(OpId::reciprocal)) return unary<OpId::reciprocal>(call);
  return {calls.div(calls.number(1, call[0]), call[0])};
}

std::optional<double> constant_exponent(const NodeCall& call) {
  const Builder& builder = call.builder;
  if (!builder.is_constant(call[1]) || element_count(builder.spec(call[1])) != 1 || !is_floating(call.dtype(0))) {
    return std::nullopt;
  }
  const Tensor& tensor = builder.constant_of(call[1]);
  return loader_of(tensor.dtype())(tensor.as<const void>(), 0);
}

/// Of the first input's type. The square, the root, the number itself and its inverse are other ops' results.
Slots power(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  if (const std::optional<double> exponent = constant_exponent(call)) {
    const int x = builder.broadcast(call[0], builder.shape(call[1]));
    if (*exponent == 2) return {calls.mul(x, x)};
    if (*exponent == 1) return {x};
    if (*exponent == 0.5) return {calls.one(OpId::sqrt, x)};
    if (*exponent == -1) return {calls.div(calls.number(1, x), x)};
  }
  const DataType dtype = call.dtype(0);
  const int exponent =
      is_floating(dtype) && !is_floating(call.dtype(1)) ? calls.cast(call[1], dtype) : second_operand(call);
  return {calls.cast(builder.call(OpId::pow, {call[0], exponent}), dtype)};
}

Slots modulo(const NodeCall& call) {
  const bool cut_off = call.integer("fmod", 0) != 0;
  return {call.builder.call(cut_off ? OpId::fmod : OpId::remainder, {call[0], call[1]})};
}

Slots shift(const NodeCall& call) {
  const std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") call.refuse("a shift whose direction is neither LEFT nor RIGHT");
  return {call.builder.call(direction == "LEFT" ? OpId::shift_left : OpId::shift_right, {call[0], call[1]})};
}

Slots sum(const NodeCall& call) {
  int total = call[0];
  for (std::size_t i = 1; i < call.size(); ++i) total = call.builder.call(OpId::add, {total, call[i]});
  return {total};
}

Slots mean(const NodeCall& call) {
  const Calls calls{call.builder};
  int total = calls.widened(call[0]);
  for (std::size_t i = 1; i < call.size(); ++i) total = calls.add(total, calls.widened(call[i]));
  return {calls.cast(calls.div(total, calls.number(static_cast<double>(call.size()), total)), call.dtype(0))};
}

/// ONNX's conversions to 8-bit floats stop at the largest unless told otherwise; ours give infinity or NaN.
int cast_to(const NodeCall& call, DataType dtype) {
  const bool is_tiny = size_of(dtype) == 1 && is_floating(dtype);
  if (is_tiny && call.integer("saturate", 1) != 0) call.lacks("8-bit floats that stop at their ends");
  return Calls{call.builder}.cast(call[0], dtype);
}

Slots cast_like(const NodeCall& call) { return {cast_to(call, call.dtype(1))}; }

Slots cast(const NodeCall& call) {
  const std::int64_t to = call.integer("to", 0);
  const std::optional<DataType> dtype = onnx::element_dtype(to);
  if (!dtype) call.lacks("a cast to ONNX's type " + std::to_string(to) + ", which is not one of ours");
  return {cast_to(call, *dtype)};
}

/// At inference it does nothing.
Slots dropout(const NodeCall& call) {
  if (call.has(2) && call.values(2) != std::vector<std::int64_t>{0}) call.lacks("training");
  return {call[0]};
}

Slots identity(const NodeCall& call) { return {call[0]}; }

constexpr Operator arithmetic_rows[] = {
    {"Add", binary<OpId::add>},
    {"Sub", binary<OpId::sub>},
    {"Mul", binary<OpId::mul>},
    {"Div", divide},
    {"Neg", negate},
    {"Abs", absolute},
    {"Reciprocal", invert},
    {"Pow", power},
    {"Mod", modulo},
    {"Exp", unary<OpId::exp>},
    {"Log", unary<OpId::log>},
    {"Sqrt", unary<OpId::sqrt>},
    {"Sign", unary<OpId::sign>},
    {"Floor", unary<OpId::floor>},
    {"Ceil", unary<OpId::ceil>},
    {"Round", unary<OpId::round>},
    {"Erf", unary<OpId::erf>},
    {"Sin", unary<OpId::sin>},
    {"Cos", unary<OpId::cos>},
    {"Tan", unary<OpId::tan>},
    {"Asin", unary<OpId::asin>},
    {"Acos", unary<OpId::acos>},
    {"Atan", unary<OpId::atan>},
    {"Sinh", unary<OpId::sinh>},
    {"Cosh", unary<OpId::cosh>},
    {"Asinh", unary<OpId::asinh>},
    {"Acosh", unary<OpId::acosh>},
    {"Atanh", unary<OpId::atanh>},
    {"BitShift", shift},
    {"BitwiseAnd", binary<OpId::bitwise_and>},
    {"BitwiseOr", binary<OpId::bitwise_or>},
    {"BitwiseXor", binary<OpId::bitwise_xor>},
    {"BitwiseNot", unary<OpId::bitwise_not>},
    {"Sum", sum},
    {"Mean", mean},
    {"Cast", cast},
    {"CastLike", cast_like},
    {"Dropout", dropout},
    {"Identity", identity},
};

}  // namespace

std::span<const Operator> arithmetic_operators() { return arithmetic_rows; }

}  // namespace xpuruntime::native
