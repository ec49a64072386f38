#include <array>
#include <limits>
#include <numeric>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

namespace xpuruntime::native {
namespace {

std::pair<int, int> moments(const Calls& calls, int x, std::span<const std::int64_t> dims);

/// By the statistics of the batch, which the running ones follow.
Slots batch_norm_in_training(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims shape = call.shape(0);
  if (shape.size() < 2) call.refuse("an input without channels");
  Dims by_channel = Dims::filled(shape.size() - 1, 1);
  by_channel[0] = shape[1];
  std::vector<std::int64_t> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d != 1) dims.push_back(static_cast<std::int64_t>(d));
  }
  const int x = calls.widened(call[0]);
  const DataType dtype = builder.spec(x).dtype;
  const auto channels = [&](int slot) { return builder.reshaped(calls.cast(slot, dtype), by_channel); };
  const auto [mean, variance] = moments(calls, x, dims);
  const int deviation = calls.one(OpId::sqrt, calls.add(variance, calls.number(call.real("epsilon", 1e-5), variance)));
  const int normed = calls.div(calls.sub(x, mean), deviation);
  const int result = calls.add(calls.mul(normed, channels(call[1])), channels(call[2]));
  const double momentum = call.real("momentum", 0.9);
  const auto followed = [&](std::size_t running, int now) {
    const int before = calls.cast(call[running], dtype), flat = builder.reshaped(now, {shape[1]});
    const int sum =
        calls.add(calls.mul(before, calls.number(momentum, before)), calls.mul(flat, calls.number(1 - momentum, flat)));
    return calls.cast(sum, call.dtype(running));
  };
  return {calls.cast(result, call.dtype(0)), followed(3, mean), followed(4, variance)};
}

Slots batch_norm(const NodeCall& call) {
  if (call.integer("training_mode", 0) != 0) return batch_norm_in_training(call);
  const std::size_t rank = call.shape(0).size();
  if (rank < 2 || rank > 5) call.refuse("an input with " + std::to_string(rank) + " dims; it takes 2 to 5");
  const OpId op = rank <= 3 ? OpId::batch_norm1d : rank == 4 ? OpId::batch_norm2d : OpId::batch_norm3d;
  Attributes attributes(op);
  attributes.set_real("eps", call.real("epsilon", 1e-5));
  return {call.builder.call(op, {call[0], call[3], call[4], call[1], call[2]}, &attributes)};
}

/// Mean and biased variance; the dims stay, with one element.
std::pair<int, int> moments(const Calls& calls, int x, std::span<const std::int64_t> dims) {
  const int mean = calls.reduce(OpId::reduce_mean, x, dims, true);
  const int off = calls.sub(x, mean);
  return {mean, calls.reduce(OpId::reduce_mean, calls.mul(off, off), dims, true)};
}

Slots layer_norm(const NodeCall& call) {
  const std::size_t rank = call.shape(0).size(), axis = call.axis(call.integer("axis", -1), rank);
  Attributes attributes(OpId::layer_norm);
  attributes.set("normalized_rank", static_cast<std::int64_t>(rank - axis)).set_real("eps", call.real("epsilon", 1e-5));
  const Dims shape = call.shape(0);
  const Dims last(std::span(shape.begin() + axis, rank - axis));
  const auto whole = [&](int slot) { return call.builder.contiguous(call.builder.broadcast(slot, last)); };
  std::vector<int> inputs = {call[0], whole(call[1])};
  if (call.has(2)) inputs.push_back(whole(call[2]));
  Slots results = {call.builder.call(OpId::layer_norm, inputs, &attributes)};
  if (call.results() < 2) return results;
  std::vector<std::int64_t> dims;
  for (std::size_t d = axis; d < rank; ++d) dims.push_back(static_cast<std::int64_t>(d));
  const Calls calls{call.builder};
  const auto [mean, variance] = moments(calls, calls.widened(call[0]), dims);
  const int root = calls.one(OpId::sqrt, calls.add(variance, calls.number(call.real("epsilon", 1e-5), variance)));
  results.insert(results.end(), {mean, calls.div(calls.number(1, root), root)});
  return results;
}

/// By the squares of neighbouring channels: x / (bias + alpha * their mean) ^ beta.
Slots local_response(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const std::int64_t size = call.integer("size", 0);
  if (shape.size() < 3 || size < 1) call.refuse("an input without an image, or no size");
  const Calls calls{call.builder};
  Dims plane = {shape[0], 1, shape[1], 1};
  for (std::size_t d = 2; d < shape.size(); ++d) plane[3] *= shape[d];
  const int squares = call.builder.reshaped(calls.mul(call[0], call[0]), plane);
  Attributes attributes(OpId::avg_pool2d);
  attributes.set_list("kernel_size", std::array{size, std::int64_t{1}})
      .set_list("stride", std::array{std::int64_t{1}, std::int64_t{1}});
  const int mean =
      call.builder.call(OpId::avg_pool2d, {calls.padded(squares, 2, (size - 1) / 2, size / 2, 0)}, &attributes);
  const int scaled = calls.mul(mean, calls.number(call.real("alpha", 0.0001), mean));
  const int base = calls.add(scaled, calls.number(call.real("bias", 1), mean));
  const int power = calls.mul(calls.one(OpId::log, base), calls.number(-call.real("beta", 0.75), mean));
  return {calls.mul(call[0], call.builder.reshaped(calls.one(OpId::exp, power), shape))};
}

/// [batch, channels, ...] as [batch, groups, elements of a group].
int grouped(Builder& builder, int slot, std::int64_t groups) {
  const Dims shape = builder.shape(slot);
  Dims to = {shape[0], groups, 1};
  for (std::size_t d = 1; d < shape.size(); ++d) to[2] *= shape[d];
  to[2] /= std::max<std::int64_t>(groups, 1);
  return builder.reshaped(slot, to);
}

/// Normalized within each group of channels, then scaled and moved by channel.
Slots group_norm(const NodeCall& call, std::int64_t groups) {
  const Dims shape = call.shape(0);
  if (shape.size() < 3 || groups < 1 || shape[1] % groups != 0) call.refuse("groups that do not divide the channels");
  Builder& builder = call.builder;
  Attributes attributes(OpId::layer_norm);
  attributes.set_real("eps", call.real("epsilon", 1e-5));
  const int normed =
      builder.reshaped(builder.call(OpId::layer_norm, {grouped(builder, call[0], groups)}, &attributes), shape);
  const auto by_channel = [&](int slot) {  // one for each channel, or before opset 21 for each group
    const std::int64_t count = element_count(builder.spec(slot));
    if (builder.shape(slot).size() != 1 || count < 1 || shape[1] % count != 0) call.refuse("a scale of another length");
    Dims to = Dims::filled(shape.size() - 1, 1);
    if (count == shape[1]) {
      to[0] = count;
      return builder.reshaped(slot, to);
    }
    const int wide = builder.broadcast(builder.reshaped(slot, {count, 1}), {count, shape[1] / count});
    to[0] = shape[1];
    return builder.reshaped(wide, to);
  };
  const Calls calls{builder};
  return {calls.add(calls.mul(normed, by_channel(call[1])), by_channel(call[2]))};
}

Slots group_norm_of(const NodeCall& call) { return group_norm(call, call.integer("num_groups", 0)); }
Slots instance_norm(const NodeCall& call) {
  if (call.shape(0).size() < 3) call.refuse("an input without an image");
  return group_norm(call, call.shape(0)[1]);
}

/// Less its mean, over its deviation.
Slots standardize(const NodeCall& call) {
  const std::vector<std::int64_t> dims = call.list("axes").value_or(std::vector<std::int64_t>{0, 2, 3});
  const Calls calls{call.builder};
  const int x = calls.widened(call[0]);
  const auto [mean, variance] = moments(calls, x, dims);
  const int deviation = calls.add(calls.one(OpId::sqrt, variance), calls.number(1e-9, variance));
  return {calls.cast(calls.div(calls.sub(x, mean), deviation), call.dtype(0))};
}

/// Over the last dims, as one.
Slots rms_norm(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const std::size_t axis = call.axis(call.integer("axis", -1), shape.size());
  const auto flat = [&](int slot, std::size_t from) {
    const Dims& whole = call.builder.shape(slot);
    Dims to = Dims::filled(from + 1, 1);
    for (std::size_t d = 0; d < whole.size(); ++d) to[std::min(d, from)] *= whole[d];
    return call.builder.reshaped(slot, to);
  };
  Attributes attributes(OpId::rms_norm);
  attributes.set_real("eps", call.real("epsilon", 1e-5));
  const int result = call.builder.call(OpId::rms_norm, {flat(call[0], axis), flat(call[1], 0)}, &attributes);
  return {call.builder.reshaped(result, shape)};
}

Slots lp_normalize(const NodeCall& call) {
  Attributes attributes(OpId::normalize);
  attributes.set_real("p", static_cast<double>(call.integer("p", 2))).set("dim", call.integer("axis", -1));
  return {call.builder.call(OpId::normalize, {call[0]}, &attributes)};
}

/// Before opset 13 all dims from the axis on are one.
template <OpId op>
Slots softmax(const NodeCall& call) {
  const Dims shape = call.shape(0);
  Attributes attributes(op);
  if (call.opset >= 13) {
    attributes.set("dim", call.integer("axis", -1));
    return {call.builder.call(op, {call[0]}, &attributes)};
  }
  const std::size_t axis = call.axis(call.integer("axis", 1), shape.size());
  Dims rows = {1, 1};
  for (std::size_t d = 0; d < shape.size(); ++d) rows[d < axis ? 0 : 1] *= shape[d];
  return {call.builder.reshaped(call.builder.call(op, {call.builder.reshaped(call[0], rows)}, &attributes), shape)};
}

/// What is reduced, and what becomes of it: the norms and logarithms are made of sums.
enum class Reduction { sum, mean, max, min, product, absolute, square, root, logarithm, log_of_exp };

int before(const Calls& calls, Reduction kind, int x) {
  if (kind == Reduction::absolute) return calls.absolute(x);
  if (kind == Reduction::square || kind == Reduction::root) return calls.mul(x, x);
  return x;
}

OpId op_of(Reduction kind) {
  if (kind == Reduction::mean) return OpId::reduce_mean;
  if (kind == Reduction::max) return OpId::reduce_max;
  if (kind == Reduction::product) return OpId::reduce_prod;
  return kind == Reduction::min ? OpId::reduce_min : OpId::reduce_sum;
}

/// Without an exp that overflows.
int log_of_exp(const Calls& calls, int x, std::span<const std::int64_t> dims, bool keep) {
  const double most = 3.4028234663852886e38;  // infinities less themselves would be NaN
  const int largest = calls.reduce(OpId::reduce_max, x, dims, true);
  const int above = calls.extreme(OpId::maximum, largest, calls.number(-most, x));
  const int highest = calls.extreme(OpId::minimum, above, calls.number(most, x));
  const int sum = calls.reduce(OpId::reduce_sum, calls.one(OpId::exp, calls.sub(x, highest)), dims, keep);
  return calls.add(calls.one(OpId::log, sum), calls.builder.reshaped(highest, calls.builder.shape(sum)));
}

/// What the largest, the smallest and the logarithm of a sum of no elements are.
int of_nothing(const NodeCall& call, Reduction kind, std::span<const std::int64_t> axes, bool keep) {
  const DataType dtype = call.dtype(0);
  const Dims& from = call.shape(0);
  std::vector<bool> gone(from.size(), axes.empty());
  for (const std::int64_t axis : axes) gone[call.axis(axis, from.size())] = true;
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (!gone[d] || keep) shape.push_back(gone[d] ? 1 : from[d]);
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double least = dtype == DataType::boolean ? 0 : -infinity;  // integers stop at their ends
  const double value = kind == Reduction::min ? infinity : least;
  return call.builder.broadcast(call.builder.number(dtype, value), Dims(std::span(shape)));
}

template <Reduction kind>
Slots reduce(const NodeCall& call) {
  const Calls calls{call.builder};
  const auto axes = call.values_or_list(1, "axes").value_or(std::vector<std::int64_t>{});
  const bool keep = call.integer("keepdims", 1) != 0;
  const DataType dtype = call.dtype(0);
  const bool needs_floats = kind >= Reduction::absolute && (kind != Reduction::square || is_floating(dtype));
  const bool chooses = kind == Reduction::max || kind == Reduction::min;
  if (needs_floats ? !is_floating(dtype) : dtype == DataType::boolean && !chooses) {
    call.lacks("elements of type " + std::string(to_string(dtype)));
  }
  const bool does_nothing = axes.empty() && call.integer("noop_with_empty_axes", 0) != 0;
  const bool is_empty = element_count(call.builder.spec(call[0])) == 0;
  if (is_empty && (chooses || kind == Reduction::log_of_exp) && !does_nothing) {
    return {of_nothing(call, kind, axes, keep)};
  }
  const int x = dtype == DataType::boolean ? calls.cast(call[0], DataType::uint8) : call[0];
  int result = before(calls, kind, needs_floats ? calls.widened(x) : x);
  const auto finished = [&](int made) { return Slots{calls.cast(made, dtype)}; };
  if (does_nothing) {
    if (kind == Reduction::log_of_exp) return finished(result);
  } else if (kind == Reduction::log_of_exp) {
    return finished(log_of_exp(calls, result, axes, keep));
  } else {
    result = calls.reduce(op_of(kind), result, axes, keep);
  }
  if (kind == Reduction::root) return finished(calls.one(OpId::sqrt, result));
  return finished(kind == Reduction::logarithm ? calls.one(OpId::log, result) : result);
}

constexpr Operator norm_rows[] = {
    {"BatchNormalization", batch_norm},
    {"LayerNormalization", layer_norm},
    {"LRN", local_response},
    {"GroupNormalization", group_norm_of},
    {"InstanceNormalization", instance_norm},
    {"MeanVarianceNormalization", standardize},
    {"RMSNormalization", rms_norm},
    {"LpNormalization", lp_normalize},
    {"Softmax", softmax<OpId::softmax>},
    {"LogSoftmax", softmax<OpId::log_softmax>},
    {"ReduceSum", reduce<Reduction::sum>},
    {"ReduceMean", reduce<Reduction::mean>},
    {"ReduceMax", reduce<Reduction::max>},
    {"ReduceMin", reduce<Reduction::min>},
    {"ReduceProd", reduce<Reduction::product>},
    {"ReduceL1", reduce<Reduction::absolute>},
    {"ReduceL2", reduce<Reduction::root>},
    {"ReduceSumSquare", reduce<Reduction::square>},
    {"ReduceLogSum", reduce<Reduction::logarithm>},
    {"ReduceLogSumExp", reduce<Reduction::log_of_exp>},
};

}  // namespace

std::span<const Operator> norm_operators() { return norm_rows; }

}  // namespace xpuruntime::native
