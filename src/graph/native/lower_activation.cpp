#include <algorithm>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Activations without an op of their own, made of those that have one.

namespace xpuruntime::native {
namespace {

template <OpId op>
Slots activation(const NodeCall& call) {
  return {call.builder.call(op, {call[0]})};
}

Slots gelu(const NodeCall& call) {
  Attributes attributes(OpId::gelu);
  attributes.set_choice("approximate", call.text("approximate", "none"));
  return {call.builder.call(OpId::gelu, {call[0]}, &attributes)};
}

Slots swish(const NodeCall& call) {
  if (call.real("alpha", 1) != 1) call.refuse("an alpha other than 1");
  return activation<OpId::silu>(call);
}

Slots absolute(const NodeCall& call) {
  if (!is_floating(call.dtype(0))) call.refuse("integers");
  return {Calls{call.builder}.absolute(call[0])};
}

/// What is positive, and what is negative.
struct Halves {
  int above;
  int below;  // 0 or less
};
Halves halves_of(const Calls& calls, int x) {
  return {calls.one(OpId::relu, x), calls.negative(calls.one(OpId::relu, calls.negative(x)))};
}

Slots leaky_relu(const NodeCall& call) {
  const Calls calls{call.builder};
  const auto [above, below] = halves_of(calls, call[0]);
  return {calls.add(above, calls.mul(below, calls.number(call.real("alpha", 0.01), call[0])))};
}

Slots prelu(const NodeCall& call) {
  if (!is_floating(call.dtype(0))) call.refuse("integers");
  const Calls calls{call.builder};
  int slope = call[1];
  if (call.opset < 7 && call.shape(1).size() == 1) {  // one for each channel
    Dims shape = Dims::filled(std::max<std::size_t>(call.shape(0).size(), 2) - 1, 1);
    shape[0] = call.shape(1)[0];
    slope = call.builder.reshaped(slope, shape);
  }
  const auto [above, below] = halves_of(calls, call[0]);
  return {calls.add(above, calls.mul(below, slope))};
}

/// scale * (x, or alpha * (exp(x / stretch) - 1) below 0)
int exponential_below(const Calls& calls, int x, double alpha, double stretch) {
  const auto [above, below] = halves_of(calls, x);
  const int scaled = stretch == 1 ? below : calls.div(below, calls.number(stretch, x));
  const int curve = calls.sub(calls.one(OpId::exp, scaled), calls.number(1, x));
  return calls.add(above, alpha == 1 ? curve : calls.mul(curve, calls.number(alpha, x)));
}

Slots elu(const NodeCall& call) { return {exponential_below(Calls{call.builder}, call[0], call.real("alpha", 1), 1)}; }

Slots celu(const NodeCall& call) {
  const double alpha = call.real("alpha", 1);
  return {exponential_below(Calls{call.builder}, call[0], alpha, alpha)};
}

Slots selu(const NodeCall& call) {
  const Calls calls{call.builder};
  const int curve = exponential_below(calls, call[0], call.real("alpha", 1.67326319217681884765625), 1);
  return {calls.mul(curve, calls.number(call.real("gamma", 1.05070102214813232421875), call[0]))};
}

/// log(1 + exp(x)) without an exp that overflows.
int softplus_of(const Calls& calls, int x) {
  const int small = calls.one(OpId::exp, calls.negative(calls.absolute(x)));
  return calls.add(calls.one(OpId::relu, x), calls.one(OpId::log, calls.add(small, calls.number(1, x))));
}

Slots softplus(const NodeCall& call) { return {softplus_of(Calls{call.builder}, call[0])}; }

Slots mish(const NodeCall& call) {
  const Calls calls{call.builder};
  return {calls.mul(call[0], calls.one(OpId::tanh, softplus_of(calls, call[0])))};
}

Slots softsign(const NodeCall& call) {
  const Calls calls{call.builder};
  return {calls.div(call[0], calls.add(calls.absolute(call[0]), calls.number(1, call[0])))};
}

constexpr Operator activation_rows[] = {
    {"Relu", activation<OpId::relu>},
    {"Sigmoid", activation<OpId::sigmoid>},
    {"Tanh", activation<OpId::tanh>},
    {"Gelu", gelu},
    {"Swish", swish},
    {"Abs", absolute},
    {"LeakyRelu", leaky_relu},
    {"PRelu", prelu},
    {"Elu", elu},
    {"Celu", celu},
    {"Selu", selu},
    {"Softplus", softplus},
    {"Mish", mish},
    {"Softsign", softsign},
};

}  // namespace

std::span<const Operator> activation_operators() { return activation_rows; }

}  // namespace xpuruntime::native
