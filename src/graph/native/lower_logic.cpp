#include <limits>

#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Comparisons, logic and choices. What they give is known before a run where all they depend on is, as shapes and masks
// mostly are.

namespace xpuruntime::native {
namespace {

/// Where no kernel of the op can run the inputs must be known before a run.
int call_or_fold(const NodeCall& call, OpId op, std::initializer_list<int> inputs) {
  if (!call.builder.may_call(op)) {
    for (std::size_t i = 0; i < call.size(); ++i) call.need_constant(i);
  }
  return call.builder.call(op, inputs);
}

void need_boolean(const NodeCall& call, std::size_t input) {
  if (call.dtype(input) != DataType::boolean) call.refuse("input " + std::to_string(input) + " that is not boolean");
}

template <OpId op>
Slots compare(const NodeCall& call) {
  return {call_or_fold(call, op, {call[0], call[1]})};
}

template <OpId op>
Slots logical(const NodeCall& call) {
  need_boolean(call, 0);
  need_boolean(call, 1);
  return {call_or_fold(call, op, {call[0], call[1]})};
}

Slots opposite(const NodeCall& call) {
  need_boolean(call, 0);
  return {call_or_fold(call, OpId::logical_not, {call[0]})};
}

Slots choose(const NodeCall& call) {
  need_boolean(call, 0);
  return {call_or_fold(call, OpId::where, {call[0], call[1], call[2]})};
}

Slots is_nan(const NodeCall& call) { return {call_or_fold(call, OpId::isnan, {call[0]})}; }

Slots is_infinite(const NodeCall& call) {
  const bool above = call.integer("detect_positive", 1) != 0, below = call.integer("detect_negative", 1) != 0;
  if (above && below) return {call_or_fold(call, OpId::isinf, {call[0]})};
  const Calls calls{call.builder};
  const double infinity = std::numeric_limits<double>::infinity();
  // Nothing is below minus infinity.
  return {call_or_fold(call, above || below ? OpId::equal : OpId::less,
                       {call[0], calls.number(above ? infinity : -infinity, call[0])})};
}

template <OpId op>
Slots extreme_of_all(const NodeCall& call) {
  int result = call[0];
  for (std::size_t i = 1; i < call.size(); ++i) result = Calls{call.builder}.extreme(op, result, call[i]);
  return {result};
}

/// A bound that the op takes as an attribute: one number that a double holds.
std::optional<double> constant_bound(const NodeCall& call, std::size_t input) {
  if (!call.builder.is_constant(call[input])) return std::nullopt;
  const Tensor& tensor = call.builder.constant_of(call[input]);
  if (element_count(tensor.spec()) != 1) return std::nullopt;
  const double bound = loader_of(tensor.dtype())(tensor.as<const void>(), 0);
  const bool exact = is_floating(tensor.dtype()) ? bound == bound : bound > -0x1p53 && bound < 0x1p53;
  return exact ? std::optional(bound) : std::nullopt;
}

/// Bounds are inputs, or attributes before opset 11.
Slots clip(const NodeCall& call) {
  const Calls calls{call.builder};
  Attributes attributes(OpId::clip);
  int result = call[0];
  const auto bound = [&](std::size_t input, const char* name, OpId op) {
    const bool given = call.has(input), named = call.attribute(name) != nullptr;
    if (!given && !named) return;
    const std::optional<double> value = given ? constant_bound(call, input) : call.real(name, 0);
    if (value && calls.has(OpId::clip)) {
      attributes.set_real(name, *value);
    } else {
      result = calls.extreme(op, result, given ? call[input] : calls.number(*value, result));
    }
  };
  bound(1, "min", OpId::maximum);
  bound(2, "max", OpId::minimum);
  const bool holds = !attributes.is_default("min") || !attributes.is_default("max");
  return {holds ? call.builder.call(OpId::clip, {result}, &attributes) : result};
}

constexpr Operator logic_rows[] = {
    {"Equal", compare<OpId::equal>},
    {"Less", compare<OpId::less>},
    {"LessOrEqual", compare<OpId::less_equal>},
    {"Greater", compare<OpId::greater>},
    {"GreaterOrEqual", compare<OpId::greater_equal>},
    {"And", logical<OpId::logical_and>},
    {"Or", logical<OpId::logical_or>},
    {"Xor", logical<OpId::logical_xor>},
    {"Not", opposite},
    {"Where", choose},
    {"IsNaN", is_nan},
    {"IsInf", is_infinite},
    {"Max", extreme_of_all<OpId::maximum>},
    {"Min", extreme_of_all<OpId::minimum>},
    {"Clip", clip},
};

}  // namespace

std::span<const Operator> logic_operators() { return logic_rows; }

}  // namespace xpuruntime::native
