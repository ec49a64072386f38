#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elements.h"
#include "graph/native/quantized.h"

namespace xpuruntime::native {
namespace {

bool is_byte(DataType dtype) { return dtype == DataType::int8 || dtype == DataType::uint8; }

bool is_single(const Builder& builder, int slot) { return slot < 0 || element_count(builder.spec(slot)) == 1; }

/// A constant with zeros taken off, one for all or one for each of the last dim or of the first, where it still is of
/// 8 bits. Nothing: it is no constant, or its numbers become too large.
std::optional<int> centred(Builder& builder, const Integers& given, bool by_first) {
  if (!builder.is_constant(given.codes) || !is_byte(builder.spec(given.codes).dtype)) return std::nullopt;
  if (given.zero < 0) return given.codes;
  if (!builder.is_constant(given.zero)) return std::nullopt;
  const Tensor& codes = builder.constant_of(builder.contiguous(given.codes));
  const Tensor& zeros = builder.constant_of(builder.contiguous(given.zero));
  const std::int64_t count = element_count(codes.spec()), slices = element_count(zeros.spec());
  if (slices == 0) return std::nullopt;
  const std::int64_t inner = by_first ? std::max<std::int64_t>(count / slices, 1) : 1;
  const LoadInteger load = integer_loader_of(codes.dtype()), zero = integer_loader_of(zeros.dtype());
  const Tensor result = Tensor::empty(DataType::int8, codes.shape());
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = load(codes.as<const void>(), i) - zero(zeros.as<const void>(), i / inner % slices);
    if (value < -128 || value > 127) return std::nullopt;
    result.as<std::int8_t>()[i] = static_cast<std::int8_t>(value);
  }
  return builder.constant(result.as_read_only());
}

/// The sum of each row of a constant, or of each slice of its first dim.
int row_sums(Builder& builder, int slot) {
  const Tensor& codes = builder.constant_of(builder.contiguous(slot));
  const std::int64_t rows = codes.shape()[0], columns = rows == 0 ? 0 : element_count(codes.spec()) / rows;
  const LoadInteger load = integer_loader_of(codes.dtype());
  const Tensor sums = Tensor::empty(DataType::int32, {rows});
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += load(codes.as<const void>(), i * columns + j);
    sums.as<std::int32_t>()[i] = static_cast<std::int32_t>(sum);
  }
  return builder.constant(sums);
}

int wide(const Calls& calls, int slot) { return calls.cast(slot, DataType::int32); }
int single(Builder& builder, int slot) { return builder.reshaped(slot, {}); }

/// Ones beside which products are sums.
int ones(Builder& builder, const Dims& shape) {
  const Tensor host = Tensor::empty(DataType::int8, shape);
  std::fill_n(host.as<std::int8_t>(), element_count(host.spec()), std::int8_t{1});
  return builder.constant(host);
}

bool is_zero(const Builder& builder, int slot) {
  if (slot < 0) return true;
  if (!builder.is_constant(slot) || element_count(builder.spec(slot)) != 1) return false;
  const Tensor& zero = builder.constant_of(slot);
  return integer_loader_of(zero.dtype())(zero.as<const void>(), 0) == 0;
}

/// What a zero point of the inputs takes off the sums with these weights, for each of them; with the bias on it.
int bias_of_zero(const Calls& calls, int zero, int weight, int bias) {
  Builder& builder = calls.builder;
  if (is_zero(builder, zero)) return bias;
  const int taken = calls.mul(single(builder, wide(calls, zero)), row_sums(builder, weight));
  return bias < 0 ? calls.mul(taken, builder.number(DataType::int32, -1)) : calls.sub(bias, taken);
}

/// Of rows of `a` or columns of `b`: one for each, so that it broadcasts to the sums.
int spread(const Calls& calls, int zero, bool of_rows) {
  Builder& builder = calls.builder;
  const Dims shape = builder.shape(zero);
  const int slot = wide(calls, zero);
  if (element_count(builder.spec(slot)) == 1) return single(builder, slot);
  return of_rows && shape.size() == 1 ? builder.reshaped(slot, {shape[0], 1}) : slot;
}

/// sum (a - x)(b - y) = sum a b - x sum b - y sum a + k x y
int matmul_of_any(const Calls& calls, const Integers& a, const Integers& b) {
  Builder& builder = calls.builder;
  int sums = builder.call(OpId::matmul, {a.codes, b.codes});
  const std::int64_t k = builder.shape(a.codes).back();
  const bool has_a = !is_zero(builder, a.zero), has_b = !is_zero(builder, b.zero);
  const int x = has_a ? spread(calls, a.zero, true) : -1, y = has_b ? spread(calls, b.zero, false) : -1;
  if (has_a) {
    const int columns = builder.call(OpId::matmul, {ones(builder, {1, k}), b.codes});
    sums = calls.sub(sums, calls.mul(x, columns));
  }
  if (has_b) {
    const int rows = builder.call(OpId::matmul, {a.codes, ones(builder, {k, 1})});
    sums = calls.sub(sums, calls.mul(y, rows));
  }
  if (!has_a || !has_b) return sums;
  const int terms = builder.number(DataType::int32, static_cast<double>(k));
  return calls.add(sums, calls.mul(calls.mul(x, y), terms));
}

/// One factor's scale for all times the other's, in f32.
int joint_scale(const Calls& calls, int a, int b) {
  const auto ready = [&](int slot) {
    slot = calls.cast(slot, DataType::float32);
    return element_count(calls.builder.spec(slot)) == 1 ? single(calls.builder, slot) : slot;
  };
  return calls.mul(ready(a), ready(b));
}

/// A bias of floats as what is added to sums of this scale. Nothing where it is not known yet or too large.
std::optional<int> bias_for_sums(Builder& builder, int bias, int scale) {
  if (!builder.is_constant(bias) || !builder.is_constant(scale) || builder.shape(bias).size() != 1) return std::nullopt;
  const Tensor& values = builder.constant_of(builder.contiguous(bias));
  const Tensor& scales = builder.constant_of(scale);
  const LoadElement load = loader_of(values.dtype()), load_scale = loader_of(scales.dtype());
  const bool many = element_count(scales.spec()) > 1;
  const Tensor result = Tensor::empty(DataType::int32, values.shape());
  for (std::int64_t i = 0; i < values.shape()[0]; ++i) {
    const double code =
        std::nearbyint(load(values.as<const void>(), i) / load_scale(scales.as<const void>(), many ? i : 0));
    if (!(std::fabs(code) < 0x1p30)) return std::nullopt;  // room for the sums
    result.as<std::int32_t>()[i] = static_cast<std::int32_t>(code);
  }
  return builder.constant(result);
}

/// What two slots were made of, where products of the integers can stand for those of the floats.
struct Factors {
  Codes x, weight;
};
std::optional<Factors> factors_of(const NodeCall& call) {
  const Builder& builder = call.builder;
  const Codes *x = builder.codes_of(call[0]), *weight = builder.codes_of(call[1]);
  if (x == nullptr || weight == nullptr || call.dtype(0) != DataType::float32) return std::nullopt;
  if (!is_byte(builder.spec(x->codes).dtype) || !is_single(builder, x->scale) || !is_single(builder, x->zero)) {
    return std::nullopt;
  }
  return Factors{*x, *weight};
}

/// Floats from sums, with a bias that may have to be added to them.
int finished(const NodeCall& call, const Factors& factors, int sums, std::int64_t dim, int late_bias) {
  const int result = scaled_sums(call, sums, factors.x.scale, factors.weight.scale, dim);
  return late_bias < 0 ? result : Calls{call.builder}.add(result, late_bias);
}

}  // namespace

int integer_matmul(const NodeCall& call, const Integers& a, const Integers& b, int bias) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  if (!is_byte(builder.spec(a.codes).dtype) || !is_byte(builder.spec(b.codes).dtype)) {
    call.lacks("factors that are not of 8 bits");
  }
  const auto weight = builder.shape(b.codes).size() == 2 && is_single(builder, a.zero) ? centred(builder, b, false)
                                                                                       : std::optional<int>();
  if (weight && builder.shape(a.codes).size() > 0) {
    const std::int64_t dims[] = {1, 0};
    const int turned = builder.contiguous(calls.permuted(*weight, dims));
    const int added = bias_of_zero(calls, a.zero, turned, bias);
    if (added < 0) return builder.call(OpId::linear, {a.codes, turned});
    return builder.call(OpId::linear, {a.codes, turned, added});
  }
  if (builder.shape(a.codes).size() < 2 || builder.shape(b.codes).size() < 2) call.lacks("vectors of integers");
  const int sums = matmul_of_any(calls, a, b);
  return bias < 0 ? sums : calls.add(sums, bias);
}

int integer_conv(const NodeCall& call, const Integers& x, const Integers& weight, int bias) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const auto ready = centred(builder, weight, true);
  if (!is_single(builder, x.zero)) call.lacks("a zero point for each channel of the input");
  if (!ready) {  // in 32 bits, without their zero points
    const auto without = [&](const Integers& given, std::size_t rank) {
      if (given.zero < 0) return wide(calls, given.codes);
      const std::int64_t count = element_count(builder.spec(given.zero));
      Dims shape = count == 1 ? Dims{} : Dims::filled(rank, 1);
      if (count != 1) shape[0] = count;
      return calls.sub(wide(calls, given.codes), builder.reshaped(wide(calls, given.zero), shape));
    };
    const std::size_t rank = builder.shape(weight.codes).size();
    return convolved(call, without(x, rank), without(weight, rank), bias);
  }
  if (is_zero(builder, x.zero)) return convolved(call, x.codes, *ready, bias);
  if (builder.is_constant(x.zero) || !pads_images(call, *ready)) {
    double around = 0;
    if (builder.is_constant(x.zero)) {
      const Tensor& zero = builder.constant_of(x.zero);
      around = loader_of(zero.dtype())(zero.as<const void>(), 0);
    }
    return convolved(call, x.codes, *ready, bias_of_zero(calls, x.zero, *ready, bias), around);
  }
  // What lies around images is the zero point, of which only a run knows the value: it takes off what an image of ones
  // has, whose surroundings are 0.
  Dims image = builder.shape(x.codes);
  image[0] = 1;
  const int reached = convolved(call, ones(builder, image), *ready, -1);
  return calls.sub(convolved(call, x.codes, *ready, bias), calls.mul(single(builder, wide(calls, x.zero)), reached));
}

int scaled_sums(const NodeCall& call, int sums, int scale_a, int scale_b, std::int64_t dim) {
  const int scale = joint_scale(Calls{call.builder}, scale_a, scale_b);
  Attributes attributes(OpId::dequantize);
  attributes.set("dim", dim);
  const int result = call.builder.call(OpId::dequantize, {sums, scale}, &attributes);
  call.builder.remember(result, {sums, scale, -1, dim});
  return result;
}

int quantized_sums(const NodeCall& call, int sums, int scale_a, int scale_b, std::int64_t dim, int scale, int zero) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  if (!is_single(builder, scale) || !is_single(builder, zero)) call.lacks("a result with a scale for each slice");
  const int to = single(builder, calls.cast(scale, DataType::float32));
  const int ratio = calls.div(to, scale_b < 0 ? scale_a : joint_scale(calls, scale_a, scale_b));
  Attributes attributes(OpId::quantize);
  attributes.set("dim", dim);
  if (zero < 0) return builder.call(OpId::quantize, {sums, ratio}, &attributes);
  zero = single(builder, zero);
  return builder.call(OpId::quantize, {sums, ratio, builder.contiguous(builder.broadcast(zero, builder.shape(ratio)))},
                      &attributes);
}

std::optional<int> matmul_of_codes(const NodeCall& call, bool across, int bias) {
  Builder& builder = call.builder;
  const auto factors = factors_of(call);
  if (!factors || builder.shape(factors->weight.codes).size() != 2 || call.shape(0).empty()) return std::nullopt;
  const Codes& codes = factors->weight;
  const std::int64_t along = codes.dim < 0 ? codes.dim + 2 : codes.dim, columns = across ? 0 : 1;
  const bool fits = is_single(builder, codes.scale) || along == columns;
  const auto ready = fits ? centred(builder, {codes.codes, codes.zero}, along == 0) : std::optional<int>();
  if (!ready) return std::nullopt;
  const Calls calls{builder};
  const int scale = joint_scale(calls, factors->x.scale, codes.scale);
  const auto added = bias < 0 ? std::nullopt : bias_for_sums(builder, bias, scale);
  const std::int64_t dims[] = {1, 0};
  const int weight = across ? calls.permuted(*ready, dims) : *ready;
  const int sums = integer_matmul(call, {factors->x.codes, factors->x.zero}, {weight, -1}, added.value_or(-1));
  return finished(call, *factors, sums, -1, added ? -1 : bias);
}

std::optional<int> conv_of_codes(const NodeCall& call, int bias) {
  Builder& builder = call.builder;
  const auto factors = factors_of(call);
  if (!factors) return std::nullopt;
  const Codes& codes = factors->weight;
  const bool padded = pads_images(call, codes.codes) && factors->x.zero >= 0 && !builder.is_constant(factors->x.zero);
  if (padded || (!is_single(builder, codes.scale) && codes.dim != 0)) return std::nullopt;
  const auto ready = centred(builder, {codes.codes, codes.zero}, true);
  if (!ready) return std::nullopt;
  const int scale = joint_scale(Calls{builder}, factors->x.scale, codes.scale);
  const auto added = bias < 0 ? std::nullopt : bias_for_sums(builder, bias, scale);
  const int sums = integer_conv(call, {factors->x.codes, factors->x.zero}, {*ready, -1}, added.value_or(-1));
  int late = -1;
  if (bias >= 0 && !added) {
    Dims shape = Dims::filled(builder.shape(sums).size(), 1);
    shape[1] = element_count(builder.spec(bias));
    late = builder.reshaped(bias, shape);
  }
  return finished(call, *factors, sums, 1, late);
}

}  // namespace xpuruntime::native
