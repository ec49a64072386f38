#include <algorithm>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Activations. Those without an op of their own, or without a kernel on the device, are made of others.

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
  if (call.real("alpha", 1) != 1) call.lacks("an alpha other than 1");
  return activation<OpId::silu>(call);
}

/// What is positive, and what is negative.
struct Halves {
  int above;
  int below;  // 0 or less
};
Halves halves_of(const Calls& calls, int x) {
  return {calls.one(OpId::relu, x), calls.negative(calls.one(OpId::relu, calls.negative(x)))};
}

/// One attribute of the op is ONNX's `alpha`.
int with_alpha(const NodeCall& call, OpId op, std::string_view name, double alpha) {
  Attributes attributes(op);
  return call.builder.call(op, {call[0]}, &attributes.set_real(name, alpha));
}

Slots leaky_relu(const NodeCall& call) {
  const Calls calls{call.builder};
  const double slope = call.real("alpha", 0.01);
  if (calls.has(OpId::leaky_relu)) return {with_alpha(call, OpId::leaky_relu, "negative_slope", slope)};
  const auto [above, below] = halves_of(calls, call[0]);
  return {calls.add(above, calls.mul(below, calls.number(slope, call[0])))};
}

Slots prelu(const NodeCall& call) {
  if (!is_floating(call.dtype(0))) call.lacks("integers");
  const Calls calls{call.builder};
  int slope = call[1];
  if (call.opset < 7 && call.shape(1).size() == 1) {  // one for each channel
    Dims shape = Dims::filled(std::max<std::size_t>(call.shape(0).size(), 2) - 1, 1);
    shape[0] = call.shape(1)[0];
    slope = call.builder.reshaped(slope, shape);
  }
  if (calls.has(OpId::prelu)) return {call.builder.call(OpId::prelu, {call[0], slope})};
  const auto [above, below] = halves_of(calls, call[0]);
  return {calls.add(above, calls.mul(below, slope))};
}

/// x, or alpha * (exp(x / stretch) - 1) below 0
int exponential_below(const Calls& calls, int x, double alpha, double stretch) {
  const auto [above, below] = halves_of(calls, x);
  const int scaled = stretch == 1 ? below : calls.div(below, calls.number(stretch, x));
  const int curve = calls.sub(calls.one(OpId::exp, scaled), calls.number(1, x));
  return calls.add(above, alpha == 1 ? curve : calls.mul(curve, calls.number(alpha, x)));
}

int elu_of(const NodeCall& call, double alpha) {
  if (call.builder.has_kernel(OpId::elu)) return with_alpha(call, OpId::elu, "alpha", alpha);
  return exponential_below(Calls{call.builder}, call[0], alpha, 1);
}

Slots elu(const NodeCall& call) { return {elu_of(call, call.real("alpha", 1))}; }

Slots celu(const NodeCall& call) {
  const double alpha = call.real("alpha", 1);
  return {exponential_below(Calls{call.builder}, call[0], alpha, alpha)};
}

Slots selu(const NodeCall& call) {
  const Calls calls{call.builder};
  const int curve = elu_of(call, call.real("alpha", 1.67326319217681884765625));
  return {calls.mul(curve, calls.number(call.real("gamma", 1.05070102214813232421875), call[0]))};
}

/// log(1 + exp(x)) without an exp that overflows.
int softplus_of(const Calls& calls, int x) {
  if (calls.has(OpId::softplus)) return calls.one(OpId::softplus, x);
  const int small = calls.one(OpId::exp, calls.negative(calls.absolute(x)));
  return calls.add(calls.one(OpId::relu, x), calls.one(OpId::log, calls.add(small, calls.number(1, x))));
}

Slots softplus(const NodeCall& call) { return {softplus_of(Calls{call.builder}, call[0])}; }

int hard_sigmoid_of(const NodeCall& call, double alpha, double beta) {
  const Calls calls{call.builder};
  const int x = call[0];
  if (calls.has(OpId::hard_sigmoid)) {
    Attributes attributes(OpId::hard_sigmoid);
    return call.builder.call(OpId::hard_sigmoid, {x}, &attributes.set_real("alpha", alpha).set_real("beta", beta));
  }
  const int line = calls.add(calls.mul(x, calls.number(alpha, x)), calls.number(beta, x));
  return calls.extreme(OpId::minimum, calls.one(OpId::relu, line), calls.number(1, x));
}

Slots hard_sigmoid(const NodeCall& call) {
  return {hard_sigmoid_of(call, call.real("alpha", 0.2f), call.real("beta", 0.5))};
}

Slots hard_swish(const NodeCall& call) {
  const Calls calls{call.builder};
  if (calls.has(OpId::hard_swish)) return activation<OpId::hard_swish>(call);
  return {calls.mul(call[0], hard_sigmoid_of(call, 1.0 / 6, 0.5))};
}

/// x above alpha, else 0.
Slots thresholded_relu(const NodeCall& call) {
  const Calls calls{call.builder};
  const int above = call.builder.call(OpId::greater, {call[0], calls.number(call.real("alpha", 1), call[0])});
  return {call.builder.call(OpId::where, {above, call[0], calls.number(0, call[0])})};
}

/// x + bias below -lambd, x - bias above lambd, else 0.
Slots shrink(const NodeCall& call) {
  const Calls calls{call.builder};
  Builder& builder = call.builder;
  if (!is_floating(call.dtype(0))) call.lacks("integers");
  const int x = call[0], bias = calls.number(call.real("bias", 0), x), zero = calls.number(0, x);
  const double edge = call.real("lambd", 0.5);
  const int above = builder.call(OpId::greater, {x, calls.number(edge, x)});
  const int below = builder.call(OpId::less, {x, calls.number(-edge, x)});
  const int lower = builder.call(OpId::where, {below, calls.add(x, bias), zero});
  return {builder.call(OpId::where, {above, calls.sub(x, bias), lower})};
}

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
    {"LeakyRelu", leaky_relu},
    {"PRelu", prelu},
    {"Elu", elu},
    {"Celu", celu},
    {"Selu", selu},
    {"Softplus", softplus},
    {"Mish", mish},
    {"Softsign", softsign},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
    {"ThresholdedRelu", thresholded_relu},
    {"Shrink", shrink},
};

}  // namespace

std::span<const Operator> activation_operators() { return activation_rows; }

}  // namespace xpuruntime::native
