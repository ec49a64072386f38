#include <cmath>
#include <numeric>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// What language models of late take over from step to step: states of linear attention and convolutions, and caches.

namespace xpuruntime::native {
namespace {

Slots swiglu(const NodeCall& call) {
  const Calls calls{call.builder};
  if (call.shape(0) != call.shape(1) || call.dtype(0) != call.dtype(1)) call.refuse("inputs that differ");
  const double alpha = call.real("alpha", 1);
  const int gate = alpha == 1 ? call[0] : calls.mul(call[0], calls.number(alpha, call[0]));
  return {calls.mul(calls.mul(call[0], calls.one(OpId::sigmoid, gate)), call[1])};
}

/// What came before stands in front of the input; each channel has a filter of its own.
Slots causal_conv(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims shape = call.shape(0), weight = call.shape(1);
  if (shape.size() != 3 || weight.size() != 3 || weight[0] != shape[1] || weight[1] != 1 || weight[2] < 1) {
    call.refuse("an input " + to_string(shape) + " with a filter " + to_string(weight));
  }
  const std::int64_t before = weight[2] - 1;
  const Dims state = {shape[0], shape[1], before};
  if (call.has(3) && call.shape(3) != state) call.refuse("a state " + to_string(call.shape(3)));
  const int parts[] = {call.has(3) ? call[3] : -1, call[0]};
  const int whole = call.has(3) ? calls.concat(parts, 2) : calls.padded(call[0], 2, before, 0, 0);
  const std::int64_t length = shape[2] + before;
  Slots inputs = {builder.reshaped(whole, {shape[0], shape[1], 1, length}),
                  builder.reshaped(call[1], {shape[1], 1, 1, weight[2]})};
  if (call.has(2)) inputs.push_back(call[2]);
  Attributes attributes(OpId::conv2d);
  int result = builder.reshaped(builder.call(OpId::conv2d, inputs, &attributes.set("groups", shape[1])), shape);
  const std::string activation = call.text("activation", "none");
  if (activation == "silu" || activation == "swish") {
    result = calls.one(OpId::silu, result);
  } else if (activation != "none") {
    call.lacks("the activation " + activation);
  }
  return {result, calls.slice(whole, 2, length - before, length)};
}

/// A cache with the new elements where each sequence of the batch has come to.
Slots tensor_scatter(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims cache = call.shape(0), update = call.shape(1);
  const std::size_t axis = call.axis(call.integer("axis", -2), cache.size());
  Dims expected = cache;
  if (update.size() == cache.size()) expected[axis] = update[axis];
  if (axis == 0 || update != expected || update[axis] > cache[axis] || cache[axis] < 1) {
    call.refuse("a cache " + to_string(cache) + " with " + to_string(update));
  }
  std::vector<std::int64_t> steps(static_cast<std::size_t>(update[axis]));
  std::iota(steps.begin(), steps.end(), std::int64_t{0});
  Dims along = Dims::filled(cache.size(), 1), by_batch = along;
  along[axis] = update[axis];
  by_batch[0] = cache[0];
  int places = builder.reshaped(builder.integers(steps), along);
  if (call.has(2)) places = calls.add(builder.reshaped(calls.cast(call[2], DataType::int64), by_batch), places);
  const std::string mode = call.text("mode", "linear");
  if (mode == "circular") {  // the quotient is cut off
    const int exact = calls.cast(places, DataType::float64);
    const auto size = static_cast<double>(cache[axis]);
    const int rounds = calls.cast(calls.div(exact, calls.number(size, exact)), DataType::int64);
    places = calls.sub(places, calls.mul(rounds, calls.number(size, places)));
  } else if (mode != "linear") {
    call.lacks("mode " + mode);
  }
  Attributes attributes(OpId::scatter_elements);
  attributes.set("dim", static_cast<std::int64_t>(axis));
  const int index = builder.contiguous(builder.broadcast(places, update));
  return {builder.call(OpId::scatter_elements, {call[0], index, call[1]}, &attributes)};
}

/// The sizes of a linear attention, checked against its inputs.
struct Heads {
  std::int64_t batch, steps, heads, group, keys, values;
};

Heads heads_of(const NodeCall& call) {
  const Dims q = call.shape(0), k = call.shape(1), v = call.shape(2);
  const std::int64_t query_heads = call.integer("q_num_heads", 0), heads = call.integer("kv_num_heads", 0);
  const bool fits = q.size() == 3 && k.size() == 3 && v.size() == 3 && heads > 0 && query_heads > 0 &&
                    query_heads % heads == 0 && q[2] % query_heads == 0 && v[2] % heads == 0;
  if (!fits || k != Dims{q[0], q[1], q[2] / query_heads * heads} || v != Dims{q[0], q[1], v[2]}) {
    call.refuse("queries " + to_string(q) + ", keys " + to_string(k) + " and values " + to_string(v));
  }
  if (q[1] < 1 || q[1] > 10'000) call.refuse("a sequence of " + std::to_string(q[1]) + " steps");
  return {q[0], q[1], heads, query_heads / heads, q[2] / query_heads, v[2] / heads};
}

/// [batch, steps, heads * rows * columns] as f32 [steps, batch, heads, rows, columns].
int by_step(const Calls& calls, int slot, const Heads& all, std::int64_t heads, std::int64_t rows,
            std::int64_t columns) {
  const std::int64_t turned[] = {1, 0, 2, 3, 4};
  const int parts = calls.builder.reshaped(slot, {all.batch, all.steps, heads, rows, columns});
  return calls.permuted(calls.cast(parts, DataType::float32), turned);
}

/// The matrix of each head: decays, forgets what the key recalls, learns the value, and answers the query.
Slots linear_attention(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Heads all = heads_of(call);
  const std::string rule = call.text("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if ((!decays && !corrects && rule != "linear") || decays != call.has(4) || corrects != call.has(5)) {
    call.lacks("the update_rule " + rule + " with these inputs");
  }
  const double scale = call.real("scale", 0);
  const int q = by_step(calls, call[0], all, all.heads, all.group, all.keys);
  const int queries = calls.mul(q, calls.number(scale == 0 ? 1 / std::sqrt(static_cast<double>(all.keys)) : scale, q));
  const int keys = by_step(calls, call[1], all, all.heads, 1, all.keys);
  const int values = by_step(calls, call[2], all, all.heads, 1, all.values);
  int decay = -1, share = -1;
  if (decays) {
    const bool by_key = call.shape(4).back() != all.heads;
    decay = calls.one(OpId::exp, by_step(calls, call[4], all, all.heads, by_key ? all.keys : 1, 1));
  }
  if (corrects) share = by_step(calls, call[5], all, call.shape(5).back() == 1 ? 1 : all.heads, 1, 1);
  const auto of_step = [&](int slot, std::int64_t step) {
    const Dims shape = builder.shape(slot);
    return builder.reshaped(calls.slice(slot, 0, step, step + 1), {shape[1], shape[2], shape[3], shape[4]});
  };
  const Dims state_shape = {all.batch, all.heads, all.keys, all.values};
  if (call.has(3) && call.shape(3) != state_shape) call.refuse("a state " + to_string(call.shape(3)));
  int state = call.has(3) ? calls.cast(call[3], DataType::float32)
                          : builder.contiguous(builder.broadcast(builder.number(DataType::float32, 0), state_shape));
  std::vector<int> answers;
  for (std::int64_t step = 0; step < all.steps; ++step) {
    const int key = of_step(keys, step);
    int value = of_step(values, step);
    if (decays) state = calls.mul(state, of_step(decay, step));
    if (corrects) value = calls.mul(of_step(share, step), calls.sub(value, builder.call(OpId::matmul, {key, state})));
    const int column = builder.reshaped(key, {all.batch, all.heads, all.keys, 1});
    state = calls.add(state, calls.mul(column, value));
    const int answer = builder.call(OpId::matmul, {of_step(queries, step), state});
    answers.push_back(builder.reshaped(answer, {1, all.batch, all.heads * all.group, all.values}));
  }
  const std::int64_t turned[] = {1, 0, 2, 3};
  const int result = builder.reshaped(calls.permuted(calls.joined(answers, 0), turned),
                                      {all.batch, all.steps, all.heads * all.group * all.values});
  return {calls.cast(result, call.dtype(0)), calls.cast(state, call.dtype(call.has(3) ? 3 : 0))};
}

constexpr Operator sequence_rows[] = {{"SwiGLU", swiglu},
                                      {"CausalConvWithState", causal_conv},
                                      {"TensorScatter", tensor_scatter},
                                      {"LinearAttention", linear_attention}};

}  // namespace

std::span<const Operator> sequence_operators() { return sequence_rows; }

}  // namespace xpuruntime::native
