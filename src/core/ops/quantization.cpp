#include <algorithm>

#include "core/ops/schema.h"

namespace xpuruntime::op_rows {
namespace {

bool is_code(DataType dtype) { return dtype == DataType::int8 || dtype == DataType::uint8 || dtype == DataType::int16; }

/// What a scale stands for: everything, a slice along `dim`, or `block_size` elements in line along it.
Dims scale_shape(const ForwardCall& call) {
  const std::int64_t block = call.attributes().integer("block_size");
  if (block < 0) call.refuse("block_size is negative; give 1 or more, or 0 for a scale for each slice");
  if (block == 0 && element_count(call[1]) == 1 && call.shape(1).size() <= 1) return call.shape(1);
  Dims shape = call.shape(0);
  const std::size_t axis = call.axis(call.attributes().integer("dim"), shape.size());
  if (block == 0) return {shape[axis]};
  shape[axis] = shape[axis] / block + (shape[axis] % block != 0 ? 1 : 0);
  return shape;
}

void check_scale(const ForwardCall& call) {
  call.need_floating(1);
  const Dims shape = scale_shape(call);
  call.need_shape(1, shape, "scale");
  if (!call.has(2)) return;
  if (element_count(call[2]) == 1 && element_count(call[1]) == 1 && call.shape(2).size() <= 1) return;
  call.need_shape(2, shape, "zero point");
}

// The codes are of the zero point's dtype, or of the one that is asked for.
Specs infer_quantize(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  if (call[0].dtype != DataType::int32) call.need_floating(0);
  check_scale(call);
  DataType dtype = attributes.data_type("dtype");
  if (call.has(2)) {
    if (!attributes.is_default("dtype") && dtype != call[2].dtype) {
      call.refuse("the zero point is " + std::string(to_string(call[2].dtype)) + " and dtype is " +
                  std::string(to_string(dtype)) + "; make them equal or leave dtype out");
    }
    dtype = call[2].dtype;
  }
  if (!is_code(dtype)) call.refuse("values are quantized to i8, u8 or i16; ask for one of them");
  return {like_inputs(inputs.first(1), dtype, call.shape(0))};
}

Specs infer_dequantize(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  if (!is_code(call[0].dtype) && call[0].dtype != DataType::int32) {
    call.refuse("input 0 holds the codes and is not i8, u8, i16 or i32; quantize it first");
  }
  check_scale(call);
  if (call.has(2) && call[2].dtype != call[0].dtype) {
    call.refuse("the zero point is " + std::string(to_string(call[2].dtype)) + "; give it the codes' dtype");
  }
  const DataType dtype = attributes.data_type("dtype");
  if (!is_floating(dtype)) call.refuse("values are floating; ask for f32, f16, bf16 or f64");
  return {like_inputs(inputs.first(1), dtype, call.shape(0))};
}

constexpr InputSpec scale_input = {
    .name = "scale", .or_number = true, .values = InputValues::positive, .gradient = false, .follows_precision = false};
constexpr InputSpec zero_input = {
    .name = "zero_point", .optional = true, .gradient = false, .follows_precision = false};
constexpr InputSpec quantize_inputs[] = {
    {.name = "input", .gradient = false, .follows_precision = false}, scale_input, zero_input};
constexpr InputSpec dequantize_inputs[] = {
    {.name = "input", .gradient = false, .follows_precision = false}, scale_input, zero_input};

constexpr AttributeSpec dim = integer("dim", 1, "of the scales, where there is more than one");
constexpr AttributeSpec block_size = integer("block_size", 0, "0: a scale for each slice");
constexpr AttributeSpec quantize_attributes[] = {dim, block_size, dtype("dtype", DataType::uint8)};
constexpr AttributeSpec dequantize_attributes[] = {dim, block_size, dtype("dtype", DataType::float32)};

constexpr OpInfo rows[] = {
    {.id = Id::quantize,
     .name = "quantize",
     .aliases = "QuantizeLinear",
     .category = Kind::movement,
     .summary =
         "Each value over its scale, rounded to an integer (ties to even), plus the zero point, held in the range "
         "of the result's dtype.",
     .inputs = quantize_inputs,
     .attributes = quantize_attributes,
     .infer = infer_quantize,
     .sample = "T[64,64], f32[]",
     .rounding = Rounding::exact},
    {.id = Id::dequantize,
     .name = "dequantize",
     .aliases = "DequantizeLinear",
     .category = Kind::movement,
     .summary = "Each integer less the zero point, times its scale.",
     .inputs = dequantize_inputs,
     .attributes = dequantize_attributes,
     .infer = infer_dequantize,
     .sample = "i8[64,64], f32[]",
     .rounding = Rounding::few_operations},
};

}  // namespace

std::span<const OpInfo> quantization() { return rows; }

}  // namespace xpuruntime::op_rows
