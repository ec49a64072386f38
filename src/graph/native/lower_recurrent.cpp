#include <algorithm>
#include <functional>
#include <numeric>

#include "graph/native/calls.h"
#include "graph/native/gate_functions.h"
#include "graph/native/lowering.h"

// LSTM, GRU and RNN, a step at a time: the length of the sequence is known from the shapes.

namespace xpuruntime::native {
namespace {

/// The numbers of a recurrent node, checked against its inputs.
struct Recurrence {
  std::int64_t steps, batch, width, hidden, gates, directions;
  bool batch_first;
};

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
  if (call.opset < 7) call.lacks("an opset before 7");
  if (call.has(4) && call.shape(4) != Dims{found.batch}) call.refuse("lengths " + to_string(call.shape(4)));
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

/// [steps, batch, 1]: 1 where a sequence has not ended, else 0. Below 0: all have the same length.
int unfinished(const NodeCall& call, const Recurrence& all) {
  if (!call.has(4)) return -1;
  Builder& builder = call.builder;
  const Calls calls{builder};
  if (builder.is_constant(call[4])) {
    const std::vector<std::int64_t> lengths = call.values(4);
    const auto is_whole = [&](std::int64_t length) { return length == all.steps; };
    if (std::all_of(lengths.begin(), lengths.end(), is_whole)) return -1;
  }
  std::vector<std::int64_t> steps(static_cast<std::size_t>(all.steps));
  std::iota(steps.begin(), steps.end(), std::int64_t{0});
  const int step = builder.reshaped(builder.integers(steps), {all.steps, 1, 1});
  const int length = builder.reshaped(calls.cast(call[4], DataType::int64), {all.batch, 1});
  const int left = calls.one(OpId::relu, calls.cast(calls.sub(length, step), DataType::float32));
  return calls.cast(calls.cast(left, DataType::boolean), call.dtype(0));
}

/// `now` where the mask is 1, else `before`.
int masked(const Calls& calls, int mask, int now, int before) {
  const int rest = calls.sub(calls.number(1, mask), mask);
  return calls.add(calls.mul(mask, now), calls.mul(rest, before));
}

/// All products with the input at once, then the steps.
Sequence run_direction(const NodeCall& call, const Recurrence& all, const Weights& weights, bool reverse, State state,
                       const Advance& step) {
  const Calls calls{call.builder};
  const std::int64_t turned[] = {1, 0, 2};
  const int x = all.batch_first ? calls.permuted(call[0], turned) : call[0];
  const int rows = call.builder.reshaped(x, {all.steps * all.batch, all.width});
  const int projected = linear(calls, rows, weights.input, weights.input_bias);
  Sequence sequence{.hidden = std::vector<int>(static_cast<std::size_t>(all.steps))};
  const int going_on = unfinished(call, all);
  for (std::int64_t i = 0; i < all.steps; ++i) {
    const std::int64_t at = reverse ? all.steps - 1 - i : i;
    State now = step(calls.slice(projected, 0, at * all.batch, (at + 1) * all.batch), state);
    int result = now.hidden;
    if (going_on >= 0) {
      const int mask = call.builder.reshaped(calls.slice(going_on, 0, at, at + 1), {all.batch, 1});
      result = calls.mul(result, mask);  // zeros after the end
      now.hidden = masked(calls, mask, now.hidden, state.hidden);
      if (now.cell >= 0) now.cell = masked(calls, mask, now.cell, state.cell);
    }
    state = now;
    sequence.hidden[static_cast<std::size_t>(at)] = call.builder.reshaped(result, {1, all.batch, all.hidden});
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

/// An LSTM's cell: what its gates look at, and how they open.
struct Cell {
  const NodeCall& call;
  std::int64_t hidden;
  Peepholes peepholes;
  Function gate, candidate, output;
  bool is_coupled;  // what is let in is what is forgotten
};

/// The gates in ONNX's order: input, output, forget, cell.
State lstm_step(const Cell& cell, int gates, const State& before) {
  const Calls calls{cell.call.builder};
  const auto gate = [&](std::int64_t block) { return column_block(calls, gates, block, cell.hidden); };
  const auto opened = [&](int sum, int peephole, int state) {
    return applied(cell.call, cell.gate, peephole < 0 ? sum : calls.add(sum, calls.mul(peephole, state)));
  };
  const auto result = [&](int open, int state) {
    return State{.hidden = calls.mul(open, applied(cell.call, cell.output, state)), .cell = state};
  };
  const int candidate = applied(cell.call, cell.candidate, gate(3));
  const auto next = [&](int input, int forget) {
    return calls.add(calls.mul(forget, before.cell), calls.mul(input, candidate));
  };
  if (cell.peepholes.input < 0 && !cell.is_coupled) {
    const int open = applied(cell.call, cell.gate, column_block(calls, gates, 0, cell.hidden, 3));
    const auto part = [&](std::int64_t block) { return column_block(calls, open, block, cell.hidden); };
    return result(part(1), next(part(0), part(2)));
  }
  const int input = opened(gate(0), cell.peepholes.input, before.cell);
  const int forget =
      cell.is_coupled ? calls.sub(calls.number(1, input), input) : opened(gate(2), cell.peepholes.forget, before.cell);
  const int state = next(input, forget);
  return result(opened(gate(1), cell.peepholes.output, state), state);
}

Slots lstm(const NodeCall& call) {
  const Recurrence all = recurrence_of(call, 4);
  const Functions functions = functions_of(call, {"Sigmoid", "Tanh", "Tanh"}, all.directions);
  const Calls calls{call.builder};
  return recurrent(call, all, true, [&](Weights& weights, std::int64_t direction) -> Advance {
    join_biases(calls, weights);
    const Function* own = functions.data() + 3 * direction;
    Function output = own[2];
    output.clip = 0;
    const Cell cell{call,   all.hidden, peepholes_of(call, all, direction),  own[0],
                    own[1], output,     call.integer("input_forget", 0) != 0};
    return [=, recurrent = weights.recurrent](int projected, const State& before) {
      return lstm_step(cell, calls.add(projected, linear(calls, before.hidden, recurrent, -1)), before);
    };
  });
}

/// From the update gate: what stays of the state, and what comes new.
State blended(const Calls& calls, int update, int candidate, const State& before) {
  return {.hidden = calls.add(candidate, calls.mul(update, calls.sub(before.hidden, candidate)))};
}

/// A GRU's functions.
struct Gates {
  const NodeCall& call;
  std::int64_t hidden;
  Function gate, candidate;
};

/// The reset gate works on the state's product with the weights.
Advance reset_after(const Gates& gates, const Weights& weights) {
  return [=](int projected, const State& before) {
    const Calls calls{gates.call.builder};
    const std::int64_t hidden = gates.hidden;
    const int product = linear(calls, before.hidden, weights.recurrent, weights.recurrent_bias);
    const int sum = calls.add(column_block(calls, projected, 0, hidden, 2), column_block(calls, product, 0, hidden, 2));
    const int open = applied(gates.call, gates.gate, sum);
    const int kept = calls.mul(column_block(calls, open, 1, hidden), column_block(calls, product, 2, hidden));
    const int candidate =
        applied(gates.call, gates.candidate, calls.add(column_block(calls, projected, 2, hidden), kept));
    return blended(calls, column_block(calls, open, 0, hidden), candidate, before);
  };
}

/// The reset gate works on the state.
Advance reset_before(const Gates& gates, Weights& weights) {
  const Calls calls{gates.call.builder};
  const std::int64_t hidden = gates.hidden;
  join_biases(calls, weights);
  const int of_gates = calls.slice(weights.recurrent, 0, 0, 2 * hidden);
  const int of_candidate = calls.slice(weights.recurrent, 0, 2 * hidden, 3 * hidden);
  return [=](int projected, const State& before) {
    const int product = linear(calls, before.hidden, of_gates, -1);
    const int open = applied(gates.call, gates.gate, calls.add(column_block(calls, projected, 0, hidden, 2), product));
    const int kept = calls.mul(column_block(calls, open, 1, hidden), before.hidden);
    const int sum = calls.add(column_block(calls, projected, 2, hidden), linear(calls, kept, of_candidate, -1));
    return blended(calls, column_block(calls, open, 0, hidden), applied(gates.call, gates.candidate, sum), before);
  };
}

/// The gates in ONNX's order: update, reset, candidate.
Slots gru(const NodeCall& call) {
  const Recurrence all = recurrence_of(call, 3);
  const Functions functions = functions_of(call, {"Sigmoid", "Tanh"}, all.directions);
  const bool is_after = call.integer("linear_before_reset", 0) != 0;
  return recurrent(call, all, false, [&](Weights& weights, std::int64_t direction) {
    const Function* own = functions.data() + 2 * direction;
    const Gates gates{call, all.hidden, own[0], own[1]};
    return is_after ? reset_after(gates, weights) : reset_before(gates, weights);
  });
}

Slots rnn(const NodeCall& call) {
  const Recurrence all = recurrence_of(call, 1);
  const Functions functions = functions_of(call, {"Tanh"}, all.directions);
  const Calls calls{call.builder};
  return recurrent(call, all, false, [&](Weights& weights, std::int64_t direction) -> Advance {
    join_biases(calls, weights);
    const Function function = functions[static_cast<std::size_t>(direction)];
    return [&call, calls, weights, function](int projected, const State& before) {
      const int sum = calls.add(projected, linear(calls, before.hidden, weights.recurrent, -1));
      return State{.hidden = applied(call, function, sum)};
    };
  });
}

constexpr Operator recurrent_rows[] = {{"LSTM", lstm}, {"GRU", gru}, {"RNN", rnn}};

}  // namespace

std::span<const Operator> recurrent_operators() { return recurrent_rows; }

}  // namespace xpuruntime::native
