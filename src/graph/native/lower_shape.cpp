#include <algorithm>
#include <cmath>

#include "graph/native/calls.h"
#include "graph/native/known.h"
#include "graph/onnx/element_type.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {
namespace {

Dims dims_of(const NodeCall& call, const std::vector<std::int64_t>& values) {
  if (values.size() > max_rank) call.lacks(std::to_string(values.size()) + " dims; tensors have at most 8");
  return Dims(std::span(values));
}

/// 0 keeps an extent, -1 takes what is left.
Slots reshape(const NodeCall& call) {
  const Dims from = call.shape(0);
  Dims to = dims_of(call, call.values(1));
  const bool keeps_zero = call.integer("allowzero", 0) != 0;
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t d = 0; d < to.size(); ++d) {
    if (to[d] == 0 && !keeps_zero) {
      if (d >= from.size())
        call.refuse("a shape that keeps dim " + std::to_string(d) + ", which the input does not have");
      to[d] = from[d];
    }
    if (to[d] < -1) call.refuse("a shape with an extent of " + std::to_string(to[d]) + "; give -1 or more");
    if (to[d] == -1) {
      if (open) call.refuse("shape " + to_string(to) + " with -1 more than once; give it once at most");
      open = d;
    } else {
      if (__builtin_mul_overflow(known, to[d], &known)) call.refuse("a shape with more elements than 63 bits count");
    }
  }
  const std::int64_t count = element_count(call.builder.spec(call[0]));
  if (open) to[*open] = known > 0 ? count / known : 0;
  return {call.builder.reshaped(call[0], to)};
}

Slots flatten(const NodeCall& call) {
  const Dims& shape = call.shape(0);
  const std::int64_t asked = call.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (asked < -rank || asked > rank)
    call.refuse("axis " + std::to_string(asked) + " of " + std::to_string(rank) + " dims");
  const auto axis = static_cast<std::size_t>(asked < 0 ? asked + rank : asked);
  Dims to = {1, 1};
  for (std::size_t d = 0; d < shape.size(); ++d) to[d < axis ? 0 : 1] *= shape[d];
  return {call.builder.reshaped(call[0], to)};
}

Slots squeeze(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const auto axes = call.values_or_list(1, "axes");
  std::vector<bool> gone(shape.size(), false);
  for (std::size_t d = 0; d < shape.size(); ++d) gone[d] = !axes && shape[d] == 1;
  for (const std::int64_t axis : axes.value_or(std::vector<std::int64_t>{})) {
    const std::size_t d = call.axis(axis, shape.size());
    if (shape[d] != 1) {
      fail(ErrorCode::invalid_argument, "Session",
           "dim " + std::to_string(d) + " of " + to_string(shape) + " is not 1; give inputs that fit");
    }
    gone[d] = true;
  }
  std::vector<std::int64_t> to;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!gone[d]) to.push_back(shape[d]);
  return {call.builder.reshaped(call[0], dims_of(call, to))};
}

Slots unsqueeze(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const std::vector<std::int64_t> axes = call.values_or_list(1, "axes").value_or(std::vector<std::int64_t>{});
  const std::size_t rank = shape.size() + axes.size();
  std::vector<std::int64_t> to(rank, 0);
  for (const std::int64_t axis : axes) to[call.axis(axis, rank)] = 1;
  std::size_t next = 0;
  for (std::int64_t& extent : to) {
    if (extent == 1) continue;
    if (next == shape.size()) call.refuse("axes that name a dim twice");
    extent = shape[next++];
  }
  if (next != shape.size()) call.refuse("axes that name a dim twice");
  return {call.builder.reshaped(call[0], dims_of(call, to))};
}

Slots shape_of(const NodeCall& call) {
  const Dims& shape = call.shape(0);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto end_at = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = end_at(call.integer("start", 0)), end = end_at(call.integer("end", rank));
  const std::vector<std::int64_t> extents(shape.begin() + start, shape.begin() + std::max(start, end));
  return {call.builder.integers(extents)};
}

Slots size_of_all(const NodeCall& call) {
  const std::int64_t count[] = {element_count(call.builder.spec(call[0]))};
  return {call.builder.reshaped(call.builder.integers(count), {})};
}

/// A tensor, or a number or a list of them.
Slots constant(const NodeCall& call) {
  Builder& builder = call.builder;
  if (const ModelAttribute* value = call.attribute("value");
      value != nullptr && std::holds_alternative<Tensor>(*value)) {
    return {builder.constant(std::get<Tensor>(*value))};
  }
  if (const auto list = call.list("value_ints")) return {builder.integers(*list)};
  if (call.attribute("value_int") != nullptr) {
    const std::int64_t one[] = {call.integer("value_int", 0)};
    return {builder.reshaped(builder.integers(one), {})};
  }
  if (call.attribute("value_float") != nullptr) return {builder.number(DataType::float32, call.real("value_float", 0))};
  const ModelAttribute* value = call.attribute("value_floats");
  if (value != nullptr && std::holds_alternative<std::vector<float>>(*value)) {
    const auto& floats = std::get<std::vector<float>>(*value);
    const Tensor host = Tensor::empty(DataType::float32, {static_cast<std::int64_t>(floats.size())});
    std::copy(floats.begin(), floats.end(), host.as<float>());
    return {builder.constant(host)};
  }
  call.lacks("a constant that is neither a tensor nor a number");
}

Slots constant_of_shape(const NodeCall& call) {
  const Dims shape = dims_of(call, call.values(0));
  int value = call.builder.number(DataType::float32, 0);
  if (const ModelAttribute* given = call.attribute("value");
      given != nullptr && std::holds_alternative<Tensor>(*given)) {
    value = call.builder.reshaped(call.builder.constant(std::get<Tensor>(*given)), {});
  }
  return {call.builder.broadcast(value, shape)};
}

Slots expand(const NodeCall& call) { return {call.builder.broadcast(call[0], dims_of(call, call.values(1)))}; }

constexpr std::int64_t most_numbers = 1 << 24;  // that are made before a run

int integer_range(const NodeCall& call) {
  const std::int64_t start = call.number(0), limit = call.number(1), delta = call.number(2);
  if (delta == 0) call.refuse("a range with steps of 0");
  std::vector<std::int64_t> values;
  bool ends = false;  // past what 64 bits hold
  for (std::int64_t at = start; !ends && (delta > 0 ? at < limit : at > limit);) {
    if (static_cast<std::int64_t>(values.size()) == most_numbers) call.refuse("a range of over 16 million numbers");
    values.push_back(at);
    ends = __builtin_add_overflow(at, delta, &at);
  }
  return call.builder.integers(values);
}

Slots range(const NodeCall& call) {
  const DataType dtype = call.dtype(0);
  if (!is_floating(dtype)) return {Calls{call.builder}.cast(integer_range(call), dtype)};
  const auto one = [&](std::size_t input) {
    const Known known(call, input);
    if (known.count != 1) call.refuse("an end of the range that is not one number");
    return known.real(0);
  };
  const double start = one(0), limit = one(1), delta = one(2), count = std::ceil((limit - start) / delta);
  if (!(count <= static_cast<double>(most_numbers))) call.refuse("a range of over 16 million numbers");
  const Tensor host = Tensor::empty(dtype, {static_cast<std::int64_t>(std::max(count, 0.0))});
  for (std::int64_t i = 0; i < host.shape()[0]; ++i) {
    storer_of(dtype)(host.data(), i, start + static_cast<double>(i) * delta);
  }
  return {call.builder.constant(host)};
}

DataType dtype_named(const NodeCall& call, std::string_view name, std::int64_t otherwise) {
  const std::int64_t number = call.integer(name, otherwise);
  const std::optional<DataType> dtype = onnx::element_dtype(number);
  if (!dtype)
    call.lacks("ONNX's " + onnx::element_type_text(onnx::element_type_name(number)) + ", which is not one of ours");
  return *dtype;
}

/// Ones on a diagonal, zeros elsewhere.
Slots eye_like(const NodeCall& call) {
  const Dims shape = call.shape(0);
  const std::int64_t diagonal = call.integer("k", 0);
  if (shape.size() != 2 || checked_count(shape, 1) > most_numbers)
    call.refuse("an input that is no matrix, or too large");
  const DataType dtype = call.attribute("dtype") == nullptr ? call.dtype(0) : dtype_named(call, "dtype", 1);
  const Tensor host = Tensor::empty(dtype, shape);
  for (std::int64_t i = 0; i < element_count(host.spec()); ++i) {
    storer_of(dtype)(host.data(), i, i % shape[1] - i / shape[1] == diagonal ? 1 : 0);
  }
  return {call.builder.constant(host)};
}

/// The same bits as numbers of another type.
Slots bit_cast(const NodeCall& call) {
  const DataType to = dtype_named(call, "to", 0), from = call.dtype(0);
  if (size_of(to) != size_of(from)) call.refuse("types of different sizes");
  if (to == DataType::boolean && from != to) call.lacks("bits as booleans");
  return {call.builder.reinterpreted(call[0], to)};
}

constexpr Operator shape_rows[] = {
    {"Reshape", reshape}, {"Flatten", flatten},  {"Squeeze", squeeze},   {"Unsqueeze", unsqueeze},
    {"Shape", shape_of},  {"Size", size_of_all}, {"Constant", constant}, {"ConstantOfShape", constant_of_shape},
    {"Expand", expand},   {"Range", range},      {"EyeLike", eye_like},  {"BitCast", bit_cast},
};

}  // namespace

std::span<const Operator> shape_operators() { return shape_rows; }

}  // namespace xpuruntime::native
