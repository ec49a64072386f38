#include "graph/native/quantized.h"
#include "graph/onnx/element_type.h"

namespace xpuruntime::native {
namespace {

bool is_code(DataType dtype) { return dtype == DataType::int8 || dtype == DataType::uint8 || dtype == DataType::int16; }

/// The dtype that an attribute names, or another.
DataType dtype_of(const NodeCall& call, std::string_view attribute, DataType otherwise) {
  const std::int64_t asked = call.integer(attribute, 0);
  if (asked == 0) return otherwise;
  const auto dtype = onnx::element_dtype(asked);
  if (!dtype) call.lacks("results of ONNX's " + onnx::element_type_text(onnx::element_type_name(asked)));
  return *dtype;
}

/// Scales and zero points as the ops take them: one number, one for each slice of an axis, or one for each block.
int parameter(const NodeCall& call, int slot) {
  Builder& builder = call.builder;
  if (call.integer("block_size", 0) == 0 && element_count(builder.spec(slot)) == 1) return builder.reshaped(slot, {});
  return builder.contiguous(slot);
}

Attributes quantized_attributes(const NodeCall& call, OpId op) {
  Attributes attributes(op);
  attributes.set("dim", call.integer("axis", 1)).set("block_size", call.integer("block_size", 0));
  return attributes;
}

/// 8-bit floats have no zero point: a quotient and a cast.
int quantized_float(const NodeCall& call, DataType dtype) {
  const Calls calls{call.builder};
  int scale = parameter(call, calls.cast(call[1], DataType::float32));
  if (element_count(call.builder.spec(scale)) > 1) {
    const std::size_t axis = call.axis(call.integer("axis", 1), call.shape(0).size());
    Dims shape = Dims::filled(call.shape(0).size() - axis, 1);
    if (call.builder.shape(scale).size() != 1) call.lacks("8-bit floats with a scale for each block");
    shape[0] = call.builder.shape(scale)[0];
    scale = call.builder.reshaped(scale, shape);
  }
  int quotient = calls.div(calls.cast(call[0], DataType::float32), scale);
  if (call.integer("saturate", 1) != 0) {  // at the largest, where the cast would give NaN or infinity
    const double most = dtype == DataType::float8_e4m3 ? 448 : 57344;
    quotient = calls.extreme(OpId::maximum, quotient, calls.number(-most, quotient));
    quotient = calls.extreme(OpId::minimum, quotient, calls.number(most, quotient));
  }
  return calls.cast(quotient, dtype);
}

Slots quantize(const NodeCall& call) {
  Builder& builder = call.builder;
  const DataType dtype = call.has(2) ? call.dtype(2) : dtype_of(call, "output_dtype", DataType::uint8);
  if (dtype == DataType::float8_e4m3 || dtype == DataType::float8_e5m2) return {quantized_float(call, dtype)};
  if (!is_code(dtype)) call.lacks("integers of " + std::string(to_string(dtype)));
  // Sums of integers go from their scale to the new one at once.
  const Codes* sums = builder.codes_of(call[0]);
  const bool is_single = element_count(builder.spec(call[1])) == 1 && call.integer("block_size", 0) == 0;
  if (sums != nullptr && sums->zero < 0 && builder.spec(sums->codes).dtype == DataType::int32 && is_single &&
      call.has(2) && element_count(builder.spec(call[2])) == 1) {
    return {quantized_sums(call, sums->codes, sums->scale, -1, sums->dim, call[1], call[2])};
  }
  Attributes attributes = quantized_attributes(call, OpId::quantize);
  const int scale = parameter(call, call[1]);
  if (call.has(2)) return {builder.call(OpId::quantize, {call[0], scale, parameter(call, call[2])}, &attributes)};
  attributes.set("dtype", static_cast<std::int64_t>(dtype));
  return {builder.call(OpId::quantize, {call[0], scale}, &attributes)};
}

Slots dequantize(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const DataType dtype = dtype_of(call, "output_dtype", call.dtype(1));
  if (!is_floating(dtype)) call.lacks("results of " + std::string(to_string(dtype)));
  if (is_floating(call.dtype(0))) {  // 8-bit floats, whose zero point is 0
    if (element_count(builder.spec(call[1])) != 1) call.lacks("8-bit floats with more than one scale");
    const int values = calls.cast(call[0], DataType::float32);
    return {calls.cast(calls.mul(values, parameter(call, calls.cast(call[1], DataType::float32))), dtype)};
  }
  Attributes attributes = quantized_attributes(call, OpId::dequantize);
  attributes.set("dtype", static_cast<std::int64_t>(dtype));
  const int scale = parameter(call, call[1]), zero = call.has(2) ? parameter(call, call[2]) : -1;
  const int result = zero < 0 ? builder.call(OpId::dequantize, {call[0], scale}, &attributes)
                              : builder.call(OpId::dequantize, {call[0], scale, zero}, &attributes);
  if (call.integer("block_size", 0) == 0) builder.remember(result, {call[0], scale, zero, call.integer("axis", 1)});
  return {result};
}

/// From the least to the largest value and 0, in 255 steps.
Slots dynamic_quantize(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const int flat = builder.reshaped(call[0], {element_count(builder.spec(call[0]))});
  const int above = calls.one(OpId::relu, calls.reduce(OpId::reduce_max, flat, {}, false));
  const int below = calls.one(OpId::relu, calls.negative(calls.reduce(OpId::reduce_min, flat, {}, false)));
  const int scale = calls.div(calls.add(above, below), calls.number(255, above));
  const int zero = builder.call(OpId::quantize, {below, scale});
  return {builder.call(OpId::quantize, {call[0], scale, zero}), scale, zero};
}

Integers integers(const NodeCall& call, std::size_t codes, std::size_t zero) {
  return {call[codes], call.has(zero) ? call[zero] : -1};
}

Slots matmul_integer(const NodeCall& call) {
  return {integer_matmul(call, integers(call, 0, 2), integers(call, 1, 3))};
}

Slots conv_integer(const NodeCall& call) { return {integer_conv(call, integers(call, 0, 2), integers(call, 1, 3))}; }

Slots qlinear_matmul(const NodeCall& call) {
  const int sums = integer_matmul(call, integers(call, 0, 2), integers(call, 3, 5));
  if (element_count(call.builder.spec(call[1])) != 1) call.lacks("a scale for each row");
  return {quantized_sums(call, sums, call[1], call[4], -1, call[6], call[7])};
}

Slots qlinear_conv(const NodeCall& call) {
  const int sums = integer_conv(call, integers(call, 0, 2), integers(call, 3, 5), call.has(8) ? call[8] : -1);
  return {quantized_sums(call, sums, call[1], call[4], 1, call[6], call[7])};
}

constexpr Operator quantized_rows[] = {
    {"QuantizeLinear", quantize},      {"DequantizeLinear", dequantize}, {"DynamicQuantizeLinear", dynamic_quantize},
    {"MatMulInteger", matmul_integer}, {"ConvInteger", conv_integer},    {"QLinearMatMul", qlinear_matmul},
    {"QLinearConv", qlinear_conv},
};

// What ONNX Runtime's quantiser leaves in models, of its own domain.

int floats(const NodeCall& call, std::size_t codes) {
  Builder& builder = call.builder;
  const int scale = parameter(call, call[codes + 1]);
  if (!call.has(codes + 2)) return builder.call(OpId::dequantize, {call[codes], scale});
  return builder.call(OpId::dequantize, {call[codes], scale, parameter(call, call[codes + 2])});
}

int quantized_to(const NodeCall& call, int values, std::size_t scale) {
  const int to = parameter(call, call[scale]);
  if (!call.has(scale + 1)) return call.builder.call(OpId::quantize, {values, to});
  return call.builder.call(OpId::quantize, {values, to, parameter(call, call[scale + 1])});
}

template <OpId op>
Slots qlinear_two(const NodeCall& call) {
  return {quantized_to(call, call.builder.call(op, {floats(call, 0), floats(call, 3)}), 6)};
}

Slots qlinear_sigmoid(const NodeCall& call) {
  return {quantized_to(call, call.builder.call(OpId::sigmoid, {floats(call, 0)}), 3)};
}

Slots qlinear_global_average(const NodeCall& call) {
  const std::size_t rank = call.shape(0).size();
  const bool channels_last = call.integer("channels_last", 0) != 0;
  std::vector<std::int64_t> dims;
  for (std::size_t d = channels_last ? 1 : 2; d + (channels_last ? 1 : 0) < rank; ++d) {
    dims.push_back(static_cast<std::int64_t>(d));
  }
  const int mean = Calls{call.builder}.reduce(OpId::reduce_mean, floats(call, 0), dims, true);
  return {quantized_to(call, mean, 3)};
}

Slots qlinear_concat(const NodeCall& call) {  // first the result's scale and zero point
  std::vector<int> parts;
  for (std::size_t i = 2; i + 2 < call.size(); i += 3) parts.push_back(floats(call, i));
  if (parts.empty()) call.refuse("nothing to join");
  return {quantized_to(call, Calls{call.builder}.joined(parts, call.integer("axis", 0)), 0)};
}

/// Floats of integer products, with a bias.
Slots matmul_to_float(const NodeCall& call, const Integers& a, int scale_a, const Integers& b, int scale_b, int bias) {
  const int sums = integer_matmul(call, a, b);
  const int result = scaled_sums(call, sums, scale_a, scale_b, -1);
  return {bias < 0 ? result : Calls{call.builder}.add(result, bias)};
}

Slots matmul_integer_to_float(const NodeCall& call) {
  return matmul_to_float(call, integers(call, 0, 4), call[2], integers(call, 1, 5), call[3],
                         call.has(6) ? call[6] : -1);
}

Slots dynamic_quantize_matmul(const NodeCall& call) {
  const Slots a = dynamic_quantize(call);
  return matmul_to_float(call, {a[0], a[2]}, a[1], integers(call, 1, 3), call[2], call.has(4) ? call[4] : -1);
}

constexpr Operator contrib_rows[] = {
    {"QuantizeLinear", quantize},
    {"DequantizeLinear", dequantize},
    {"QLinearAdd", qlinear_two<OpId::add>},
    {"QLinearMul", qlinear_two<OpId::mul>},
    {"QLinearSigmoid", qlinear_sigmoid},
    {"QLinearGlobalAveragePool", qlinear_global_average},
    {"QLinearConcat", qlinear_concat},
    {"MatMulIntegerToFloat", matmul_integer_to_float},
    {"DynamicQuantizeMatMul", dynamic_quantize_matmul},
};

}  // namespace

std::span<const Operator> quantized_operators() { return quantized_rows; }
std::span<const Operator> contrib_operators() { return contrib_rows; }

}  // namespace xpuruntime::native
