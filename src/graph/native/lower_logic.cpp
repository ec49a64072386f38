#include <cstring>

#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Comparisons, logic and choices have no op yet: they are computed where all they depend on is known before a run, as
// what shapes and masks are made of mostly is.

namespace xpuruntime::native {
namespace {

/// So many inputs as neighbours of one shape, which must be known.
std::vector<const Tensor*> known_inputs(const NodeCall& call, std::size_t count, Dims& shape, Slots& kept) {
  for (std::size_t i = 0; i < count; ++i) shape = broadcast_shapes(shape, call.shape(i));
  constexpr std::int64_t most = 1 << 24;  // the time this takes is bounded
  if (checked_count(shape, 1) > most) call.refuse("more than 16 million elements before a run");
  for (std::size_t i = 0; i < count; ++i) {
    call.need_constant(i);
    kept.push_back(call.builder.contiguous(call.builder.broadcast(call[i], shape)));
  }
  std::vector<const Tensor*> tensors;
  for (const int slot : kept) tensors.push_back(&call.builder.constant_of(slot));
  return tensors;
}

void need_boolean(const NodeCall& call, std::size_t input) {
  if (call.dtype(input) != DataType::boolean) call.refuse("input " + std::to_string(input) + " that is not boolean");
}

void need_same_dtype(const NodeCall& call, std::size_t a, std::size_t b) {
  if (call.dtype(a) != call.dtype(b)) call.refuse("inputs of different types");
}

template <class Compare>
Slots compare(const NodeCall& call) {
  need_same_dtype(call, 0, 1);
  Dims shape;
  Slots kept;
  const auto inputs = known_inputs(call, 2, shape, kept);
  const Tensor result = Tensor::empty(DataType::boolean, shape);
  const bool floats = is_floating(inputs[0]->dtype());
  const LoadElement load = loader_of(inputs[0]->dtype());
  const LoadInteger load_integer = floats ? nullptr : integer_loader_of(inputs[0]->dtype());
  for (std::int64_t i = 0; i < element_count(result.spec()); ++i) {
    const auto at = [&](std::size_t input) { return inputs[input]->as<const void>(); };
    result.as<bool>()[i] =
        floats ? Compare{}(load(at(0), i), load(at(1), i)) : Compare{}(load_integer(at(0), i), load_integer(at(1), i));
  }
  return {call.builder.constant(result)};
}

struct Either {
  bool operator()(auto a, auto b) const { return a != 0 || b != 0; }
};
struct Both {
  bool operator()(auto a, auto b) const { return a != 0 && b != 0; }
};

Slots opposite(const NodeCall& call) {
  need_boolean(call, 0);
  Dims shape;
  Slots kept;
  const auto inputs = known_inputs(call, 1, shape, kept);
  const Tensor result = Tensor::empty(DataType::boolean, shape);
  for (std::int64_t i = 0; i < element_count(result.spec()); ++i)
    result.as<bool>()[i] = !inputs[0]->as<const bool>()[i];
  return {call.builder.constant(result)};
}

Slots choose(const NodeCall& call) {
  need_boolean(call, 0);
  need_same_dtype(call, 1, 2);
  Dims shape;
  Slots kept;
  const auto inputs = known_inputs(call, 3, shape, kept);
  const Tensor result = Tensor::empty(inputs[1]->dtype(), shape);
  const std::size_t size = size_of(result.dtype());
  for (std::int64_t i = 0; i < element_count(result.spec()); ++i) {
    const Tensor& from = *inputs[inputs[0]->as<const bool>()[i] ? 1 : 2];
    const std::size_t at = static_cast<std::size_t>(i) * size;
    std::memcpy(result.as<std::byte>() + at, from.as<const std::byte>() + at, size);
  }
  return {call.builder.constant(result)};
}

template <OpId op>
Slots extreme_of_all(const NodeCall& call) {
  int result = call[0];
  for (std::size_t i = 1; i < call.size(); ++i) result = Calls{call.builder}.extreme(op, result, call[i]);
  return {result};
}

/// Bounds are inputs, or attributes before opset 11.
Slots clip(const NodeCall& call) {
  const Calls calls{call.builder};
  int result = call[0];
  const auto bound = [&](std::size_t input, std::string_view name, OpId op) {
    if (call.has(input)) result = calls.extreme(op, result, call[input]);
    if (call.attribute(name) != nullptr) result = calls.extreme(op, result, calls.number(call.real(name, 0), result));
  };
  bound(1, "min", OpId::reduce_max);
  bound(2, "max", OpId::reduce_min);
  return {result};
}

int hard_sigmoid_of(const Calls& calls, int x, double alpha, double beta) {
  const int line = calls.add(calls.mul(x, calls.number(alpha, x)), calls.number(beta, x));
  return calls.extreme(OpId::reduce_min, calls.one(OpId::relu, line), calls.number(1, x));
}

Slots hard_sigmoid(const NodeCall& call) {
  return {hard_sigmoid_of(Calls{call.builder}, call[0], call.real("alpha", 0.2), call.real("beta", 0.5))};
}

Slots hard_swish(const NodeCall& call) {
  const Calls calls{call.builder};
  return {calls.mul(call[0], hard_sigmoid_of(calls, call[0], 1.0 / 6, 0.5))};
}

constexpr Operator logic_rows[] = {
    {"Equal", compare<std::equal_to<>>},
    {"Less", compare<std::less<>>},
    {"LessOrEqual", compare<std::less_equal<>>},
    {"Greater", compare<std::greater<>>},
    {"GreaterOrEqual", compare<std::greater_equal<>>},
    {"And", compare<Both>},
    {"Or", compare<Either>},
    {"Xor", compare<std::not_equal_to<>>},
    {"Not", opposite},
    {"Where", choose},
    {"Max", extreme_of_all<OpId::reduce_max>},
    {"Min", extreme_of_all<OpId::reduce_min>},
    {"Clip", clip},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
};

}  // namespace

std::span<const Operator> logic_operators() { return logic_rows; }

}  // namespace xpuruntime::native
