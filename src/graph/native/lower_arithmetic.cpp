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

/// Quotients of integers are cut off; only those of shapes are needed.
Slots divide(const NodeCall& call) {
  if (is_floating(call.dtype(0))) return binary<OpId::div>(call);
  Builder& builder = call.builder;
  if (!builder.is_constant(call[0]) || !builder.is_constant(call[1])) {
    call.refuse("the quotient of integers that are not known before a run; this version divides floats only");
  }
  if (call.dtype(0) != call.dtype(1)) call.refuse("inputs of different types");
  const Dims shape = broadcast_shapes(call.shape(0), call.shape(1));
  if (checked_count(shape, 1) > 1 << 24) call.refuse("more than 16 million integers before a run");
  const int a = builder.contiguous(builder.broadcast(call[0], shape));
  const int b = builder.contiguous(builder.broadcast(call[1], shape));
  const DataType dtype = call.dtype(0);
  const Tensor result = Tensor::empty(dtype, shape);
  const auto load = integer_loader_of(dtype);
  const auto store = integer_storer_of(dtype);
  for (std::int64_t i = 0; i < element_count(result.spec()); ++i) {
    const std::int64_t divisor = load(builder.constant_of(b).as<const void>(), i);
    if (divisor == 0) call.refuse("a division of integers by zero");
    const std::int64_t number = load(builder.constant_of(a).as<const void>(), i);
    store(result.data(), i,
          divisor == -1 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(number)) : number / divisor);
  }
  return {builder.constant(result)};
}

Slots negate(const NodeCall& call) {
  return {call.builder.call(OpId::mul, {call[0], call.builder.number(call.dtype(0), -1)})};
}

Slots invert(const NodeCall& call) {
  return {call.builder.call(OpId::div, {call.builder.number(call.dtype(0), 1), call[0]})};
}

/// By exponents that an op has: the square, the root, the number itself and its inverse.
Slots power(const NodeCall& call) {
  Builder& builder = call.builder;
  if (!builder.is_constant(call[1]) || element_count(builder.spec(call[1])) != 1 || !is_floating(call.dtype(0))) {
    call.refuse("an exponent that is not one constant; this version has powers of 2, 1, 0.5 and -1");
  }
  const Tensor& tensor = builder.constant_of(call[1]);
  const double exponent = loader_of(tensor.dtype())(tensor.as<const void>(), 0);
  const int x = builder.broadcast(call[0], builder.shape(call[1]));
  if (exponent == 2) return {builder.call(OpId::mul, {x, x})};
  if (exponent == 1) return {x};
  if (exponent == 0.5) return {builder.call(OpId::sqrt, {x})};
  if (exponent == -1) return {builder.call(OpId::div, {builder.number(call.dtype(0), 1), x})};
  call.refuse("the exponent " + std::to_string(exponent) + "; this version has powers of 2, 1, 0.5 and -1");
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
  if (is_tiny && call.integer("saturate", 1) != 0) call.refuse("8-bit floats that stop at their ends");
  return Calls{call.builder}.cast(call[0], dtype);
}

Slots cast_like(const NodeCall& call) { return {cast_to(call, call.dtype(1))}; }

Slots cast(const NodeCall& call) {
  const std::int64_t to = call.integer("to", 0);
  const std::optional<DataType> dtype = onnx::element_dtype(to);
  if (!dtype) call.refuse("a cast to ONNX's type " + std::to_string(to) + ", which is not one of ours");
  return {cast_to(call, *dtype)};
}

/// At inference it does nothing.
Slots dropout(const NodeCall& call) {
  if (call.has(2) && call.values(2) != std::vector<std::int64_t>{0}) call.refuse("training");
  return {call[0]};
}

Slots identity(const NodeCall& call) { return {call[0]}; }

constexpr Operator arithmetic_rows[] = {
    {"Add", binary<OpId::add>},
    {"Sub", binary<OpId::sub>},
    {"Mul", binary<OpId::mul>},
    {"Div", divide},
    {"Neg", negate},
    {"Reciprocal", invert},
    {"Pow", power},
    {"Exp", unary<OpId::exp>},
    {"Log", unary<OpId::log>},
    {"Sqrt", unary<OpId::sqrt>},

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
