#include "graph/native/calls.h"
#include "graph/native/lowering.h"
#include "graph/onnx/element_type.h"

namespace xpuruntime::native {
namespace {

/// A scale or zero point: one number, or one for each element of an axis.
int along_axis(const NodeCall& call, int slot) {
  Builder& builder = call.builder;
  if (element_count(builder.spec(slot)) == 1) return builder.reshaped(slot, {});
  const Dims x = call.shape(0), given = builder.shape(slot);
  const std::size_t axis = call.axis(call.integer("axis", 1), x.size());
  if (given.size() != 1 || given[0] != x[axis]) call.refuse("a scale for each block");
  Dims shape = Dims::filled(x.size() - axis, 1);
  shape[0] = given[0];
  return builder.reshaped(slot, shape);
}

DataType dequantized_dtype(const NodeCall& call) {
  const std::int64_t asked = call.integer("output_dtype", 0);
  if (asked == 0) return call.dtype(1);
  const auto dtype = onnx::element_dtype(asked);
  if (!dtype || !is_floating(*dtype)) call.refuse("results of ONNX's type " + std::to_string(asked));
  return *dtype;
}

/// (x - zero point) * scale, in 32 bits.
Slots dequantize(const NodeCall& call) {
  if (call.integer("block_size", 0) != 0) call.refuse("a scale for each block");
  const Calls calls{call.builder};
  const DataType wide = DataType::float32;
  int x = call[0];
  if (call.has(2) && call.dtype(0) == DataType::int32) {  // exact before it is rounded
    x = calls.cast(calls.sub(x, along_axis(call, call[2])), wide);
  } else {
    x = calls.cast(x, wide);
    if (call.has(2)) x = calls.sub(x, calls.cast(along_axis(call, call[2]), wide));
  }
  const int scaled = calls.mul(x, calls.cast(along_axis(call, call[1]), wide));
  return {calls.cast(scaled, dequantized_dtype(call))};
}

constexpr Operator quantized_rows[] = {{"DequantizeLinear", dequantize}};

}  // namespace

std::span<const Operator> quantized_operators() { return quantized_rows; }

}  // namespace xpuruntime::native
