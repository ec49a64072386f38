#include <algorithm>
#include <functional>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// LSTM, GRU and RNN, a step at a time: the length of the sequence is known from the shapes.

namespace xpuruntime::native {
namespace {

using Names = std::vector<std::string>;

/// The numbers of a recurrent node, checked against its inputs.
struct Recurrence {
  std::int64_t steps, batch, width, hidden, gates, directions;
  bool batch_first;
};

Names activations_of(const NodeCall& call, const Names& defaults, std::int64_t directions) {
  Names names;
  for (std::int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  const auto* given = call.attribute("activations");
  const auto* list = given == nullptr ? nullptr : std::get_if<Names>(given);
  if (list == nullptr || list->empty()) return names;
  if (list->size() != names.size()) call.refuse("another number of activations than " + std::to_string(names.size()));
  return *list;
}

void refuse_other_activations(const NodeCall& call, const Names& defaults, std::int64_t directions) {
  const Names given = activations_of(call, defaults, directions);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] != defaults[i % defaults.size()]) call.refuse("the activation " + given[i] + "; it has the default");
  }
}

void refuse_uneven_sequences(const NodeCall& call, std::int64_t steps) {
  if (!call.has(4)) return;
  for (const std::int64_t length : call.values(4)) {
    if (length != steps) call.refuse("a sequence of " + std::to_string(length) + " of " + std::to_string(steps));
  }
}

Recurrence recurrence_of(const NodeCall& call, std::int64_t gates) {
  const Dims x = call.shape(0), w = call.shape(1), r = call.shape(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3) call.refuse("inputs of other than 3 dims");
  const bool batch_first = call.integer("layout", 0) != 0;
  const Recurrence found{.steps = x[batch_first ? 1 : 0],
                         .batch = x[batch_first ? 0 : 1],
                         .width = x[2],
                         .hidden = r[2],
                         .gates = gates,
                         .directions = call.text("direction", "forward") == "bidirectional" ? 2 : 1,
                         .batch_first = batch_first};
  const std::string direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && found.directions == 1) call.refuse("direction " + direction);
  const std::int64_t rows = gates * found.hidden, directions = found.directions;
  const Dims w_shape = {directions, rows, found.width}, r_shape = {directions, rows, found.hidden};
  if (w != w_shape || r != r_shape) call.refuse("weights " + to_string(w) + " and " + to_string(r));
  if (call.has(3) && call.shape(3) != Dims{directions, 2 * rows}) call.refuse("a bias " + to_string(call.shape(3)));
  if (found.steps < 1 || found.steps > 10'000) call.refuse("a sequence of " + std::to_string(found.steps) + " steps");
  if (call.attribute("clip") != nullptr) call.refuse("clip");
  if (call.opset < 7) call.refuse("an opset before 7");
  refuse_uneven_sequences(call, found.steps);
  return found;
}

/// The weights of one direction, as matrices and vectors.
struct Weights {
  int input, recurrent;
  int input_bias = -1, recurrent_bias = -1;
};

/// One row of a tensor's first dim, under another shape.
int row_of(const NodeCall& call, int slot, std::int64_t row, const Dims& shape) {
  const bool is_whole = call.builder.shape(slot)[0] == 1;
  return call.builder.reshaped(is_whole ? slot : Calls{call.builder}.slice(slot, 0, row, row + 1), shape);
}

Weights weights_of(const NodeCall& call, const Recurrence& all, std::int64_t direction) {
  const Calls calls{call.builder};
  const std::int64_t rows = all.gates * all.hidden;
  Weights weights{.input = row_of(call, call[1], direction, {rows, all.width}),
                  .recurrent = row_of(call, call[2], direction, {rows, all.hidden})};
  if (!call.has(3)) return weights;
  const int both = row_of(call, call[3], direction, {2 * rows});
  weights.input_bias = calls.slice(both, 0, 0, rows);
  weights.recurrent_bias = calls.slice(both, 0, rows, 2 * rows);
  return weights;
}

int linear(const Calls& calls, int x, int weight, int bias) {
  return bias < 0 ? calls.builder.call(OpId::linear, {x, weight}) : calls.builder.call(OpId::linear, {x, weight, bias});
}

int column_block(const Calls& calls, int x, std::int64_t block, std::int64_t width, std::int64_t count = 1) {
  return calls.slice(x, 1, block * width, (block + count) * width);
}

/// What a step takes over from the one before it.
struct State {
  int hidden = -1, cell = -1;
};

/// From a step's products with the input, all gates side by side, and the state before it.
using Advance = std::function<State(int projected, const State& before)>;

/// A direction's states before its first step: zeros where none are given.
int initial_state(const NodeCall& call, const Recurrence& all, std::size_t input, std::int64_t direction) {
  Builder& builder = call.builder;
  const Dims shape = {all.batch, all.hidden};
  if (!call.has(input)) return builder.contiguous(builder.broadcast(builder.number(call.dtype(0), 0), shape));
  const Dims stored =
      all.batch_first ? Dims{all.batch, all.directions, all.hidden} : Dims{all.directions, all.batch, all.hidden};
  if (call.shape(input) != stored) call.refuse("an initial state " + to_string(call.shape(input)));
  const std::int64_t dim = all.batch_first ? 1 : 0;
  return builder.reshaped(Calls{builder}.slice(call[input], dim, direction, direction + 1), shape);
}

struct Sequence {
  std::vector<int> hidden;  // [1, batch, hidden], in the order of the input
  State last = {};
};

/// All products with the input at once, then the steps.
Sequence run_direction(const NodeCall& call, const Recurrence& all, const Weights& weights, bool reverse, State state,
                       const Advance& step) {
  const Calls calls{call.builder};
  const std::int64_t turned[] = {1, 0, 2};
  const int x = all.batch_first ? calls.permuted(call[0], turned) : call[0];
  const int rows = call.builder.reshaped(x, {all.steps * all.batch, all.width});
  const int projected = linear(calls, rows, weights.input, weights.input_bias);
  Sequence sequence{.hidden = std::vector<int>(static_cast<std::size_t>(all.steps))};
  for (std::int64_t i = 0; i < all.steps; ++i) {
    const std::int64_t at = reverse ? all.steps - 1 - i : i;
    state = step(calls.slice(projected, 0, at * all.batch, (at + 1) * all.batch), state);
    sequence.hidden[static_cast<std::size_t>(at)] = call.builder.reshaped(state.hidden, {1, all.batch, all.hidden});
  }
  sequence.last = state;
  return sequence;
}

/// Y, Y_h and Y_c from all directions.
Slots results_of(const NodeCall& call, const Recurrence& all, const std::vector<Sequence>& directions) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  std::vector<int> whole, hidden, cell;
  for (const Sequence& one : directions) {
    const int sequence = calls.joined(one.hidden, 0);
    whole.push_back(builder.reshaped(sequence, {all.steps, 1, all.batch, all.hidden}));
    hidden.push_back(builder.reshaped(one.last.hidden, {1, all.batch, all.hidden}));
    if (one.last.cell >= 0) cell.push_back(builder.reshaped(one.last.cell, {1, all.batch, all.hidden}));
  }
  const std::int64_t batch_first[] = {2, 0, 1, 3}, batch_of_last[] = {1, 0, 2};
  Slots results;
  for (const auto* parts : {&whole, &hidden, &cell}) {
    if (parts->empty() || results.size() == call.results()) break;
    const int result = calls.concat(*parts, results.empty() ? 1 : 0);
    const std::span<const std::int64_t> turned =
        results.empty() ? std::span<const std::int64_t>(batch_first) : std::span<const std::int64_t>(batch_of_last);
    results.push_back(all.batch_first ? calls.permuted(result, turned) : result);
  }
  return results;
}

/// Makes the step of one direction of its weights, which it may change.
using MakeAdvance = std::function<Advance(Weights& weights, std::int64_t direction)>;

Slots recurrent(const NodeCall& call, const Recurrence& all, bool has_cell, const MakeAdvance& make_step) {
  std::vector<Sequence> directions;
  for (std::int64_t d = 0; d < all.directions; ++d) {
    Weights weights = weights_of(call, all, d);
    const Advance step = make_step(weights, d);
    State state{.hidden = initial_state(call, all, 5, d)};
    if (has_cell) state.cell = initial_state(call, all, 6, d);
    const bool reverse = d == 1 || call.text("direction", "forward") == "reverse";
    directions.push_back(run_direction(call, all, weights, reverse, state, step));
  }
  return results_of(call, all, directions);
}

/// Both biases are added to the products with the input.
void join_biases(const Calls& calls, Weights& weights) {
  if (weights.input_bias < 0) return;
  weights.input_bias = calls.add(weights.input_bias, weights.recurrent_bias);
  weights.recurrent_bias = -1;
}

/// How an LSTM's gates look at the cell: a vector for each, or none.
struct Peepholes {
  int input = -1, output = -1, forget = -1;
};

Peepholes peepholes_of(const NodeCall& call, const Recurrence& all, std::int64_t direction) {
  if (!call.has(7)) return {};
  if (call.shape(7) != Dims{all.directions, 3 * all.hidden}) call.refuse("peepholes " + to_string(call.shape(7)));
  const Calls calls{call.builder};
  const int rows = row_of(call, call[7], direction, {1, 3 * all.hidden});
  return {.input = column_block(calls, rows, 0, all.hidden),
          .output = column_block(calls, rows, 1, all.hidden),
          .forget = column_block(calls, rows, 2, all.hidden)};
}

/// The gates in ONNX's order: input, output, forget, cell.
State lstm_step(const Calls& calls, int gates, const State& before, std::int64_t hidden, const Peepholes& peepholes) {
  const auto gate = [&](std::int64_t block) { return column_block(calls, gates, block, hidden); };
  const auto opened = [&](int sum, int peephole, int cell) {
    return calls.one(OpId::sigmoid, calls.add(sum, calls.mul(peephole, cell)));
  };
  const int candidate = calls.one(OpId::tanh, gate(3));
  const auto cell_of = [&](int input, int forget) {
    return calls.add(calls.mul(forget, before.cell), calls.mul(input, candidate));
  };
  if (peepholes.input < 0) {
    const int open = calls.one(OpId::sigmoid, column_block(calls, gates, 0, hidden, 3));
    const auto part = [&](std::int64_t block) { return column_block(calls, open, block, hidden); };
    const int cell = cell_of(part(0), part(2));
    return {.hidden = calls.mul(part(1), calls.one(OpId::tanh, cell)), .cell = cell};
  }
  const int input = opened(gate(0), peepholes.input, before.cell);
  const int cell = cell_of(input, opened(gate(2), peepholes.forget, before.cell));
  const int output = opened(gate(1), peepholes.output, cell);
  return {.hidden = calls.mul(output, calls.one(OpId::tanh, cell)), .cell = cell};
}

Slots lstm(const NodeCall& call) {
  const Recurrence all = recurrence_of(call, 4);
  refuse_other_activations(call, {"Sigmoid", "Tanh", "Tanh"}, all.directions);
  if (call.integer("input_forget", 0) != 0) call.refuse("input_forget");
  const Calls calls{call.builder};
  return recurrent(call, all, true, [&](Weights& weights, std::int64_t direction) -> Advance {
    join_biases(calls, weights);
    const Peepholes peepholes = peepholes_of(call, all, direction);
    return [=](int projected, const State& before) {
      const int gates = calls.add(projected, linear(calls, before.hidden, weights.recurrent, -1));
      return lstm_step(calls, gates, before, all.hidden, peepholes);
    };
  });
}

/// From the update gate: what stays of the state, and what comes new.
State blended(const Calls& calls, int update, int candidate, const State& before) {
  return {.hidden = calls.add(candidate, calls.mul(update, calls.sub(before.hidden, candidate)))};
}

/// The reset gate works on the state's product with the weights.
Advance reset_after(const Calls& calls, const Weights& weights, std::int64_t hidden) {
  return [=](int projected, const State& before) {
    const int product = linear(calls, before.hidden, weights.recurrent, weights.recurrent_bias);
    const int sum = calls.add(column_block(calls, projected, 0, hidden, 2), column_block(calls, product, 0, hidden, 2));
    const int open = calls.one(OpId::sigmoid, sum);
    const int kept = calls.mul(column_block(calls, open, 1, hidden), column_block(calls, product, 2, hidden));
    const int candidate = calls.one(OpId::tanh, calls.add(column_block(calls, projected, 2, hidden), kept));
    return blended(calls, column_block(calls, open, 0, hidden), candidate, before);
  };
}

/// The reset gate works on the state.
Advance reset_before(const Calls& calls, Weights& weights, std::int64_t hidden) {
  join_biases(calls, weights);
  const int of_gates = calls.slice(weights.recurrent, 0, 0, 2 * hidden);
  const int of_candidate = calls.slice(weights.recurrent, 0, 2 * hidden, 3 * hidden);
  return [=](int projected, const State& before) {
    const int product = linear(calls, before.hidden, of_gates, -1);
    const int open = calls.one(OpId::sigmoid, calls.add(column_block(calls, projected, 0, hidden, 2), product));
    const int kept = calls.mul(column_block(calls, open, 1, hidden), before.hidden);
    const int sum = calls.add(column_block(calls, projected, 2, hidden), linear(calls, kept, of_candidate, -1));
    return blended(calls, column_block(calls, open, 0, hidden), calls.one(OpId::tanh, sum), before);
  };
}

/// The gates in ONNX's order: update, reset, candidate.
Slots gru(const NodeCall& call) {
  const Recurrence all = recurrence_of(call, 3);
  refuse_other_activations(call, {"Sigmoid", "Tanh"}, all.directions);
  const Calls calls{call.builder};
  const bool is_after = call.integer("linear_before_reset", 0) != 0;
  return recurrent(call, all, false, [&](Weights& weights, std::int64_t) {
    return is_after ? reset_after(calls, weights, all.hidden) : reset_before(calls, weights, all.hidden);
  });
}

OpId activation_named(const NodeCall& call, const std::string& name) {
  if (name == "Tanh") return OpId::tanh;
  if (name == "Relu") return OpId::relu;
  if (name == "Sigmoid") return OpId::sigmoid;
  call.refuse("the activation " + name);
}

Slots rnn(const NodeCall& call) {
  const Recurrence all = recurrence_of(call, 1);
  const Names names = activations_of(call, {"Tanh"}, all.directions);
  const Calls calls{call.builder};
  return recurrent(call, all, false, [&](Weights& weights, std::int64_t direction) -> Advance {
    join_biases(calls, weights);
    const OpId activation = activation_named(call, names[static_cast<std::size_t>(direction)]);
    return [=](int projected, const State& before) {
      const int sum = calls.add(projected, linear(calls, before.hidden, weights.recurrent, -1));
      return State{.hidden = calls.one(activation, sum)};
    };
  });
}

constexpr Operator recurrent_rows[] = {{"LSTM", lstm}, {"GRU", gru}, {"RNN", rnn}};

}  // namespace

std::span<const Operator> recurrent_operators() { return recurrent_rows; }

}  // namespace xpuruntime::native
