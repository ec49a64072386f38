#include "core/ops/schema.h"

namespace xpuruntime::op_rows {
namespace {

Specs infer_unary_float(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  return {like_inputs(inputs, call[0].dtype, call.shape(0))};
}

Specs infer_relu(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  return {like_inputs(inputs, call[0].dtype, call.shape(0))};
}

Specs infer_dropout(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  if (attributes.real("p") < 0 || attributes.real("p") > 1) call.refuse("p is not a probability; give one from 0 to 1");
  if (call.size() == 2) {
    call.need_shape(1, {2}, "seed and offset");
    if (call[1].dtype != DataType::int64) call.refuse("the seed and the offset are i64; cast them");
  }
  return {like_inputs(inputs, call[0].dtype, call.shape(0))};
}

Specs infer_binary(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  call.need_numeric(1);
  return {like_inputs(inputs, promote(inputs), call.broadcast(call.shape(0), call.shape(1)))};
}

Specs infer_divide(Inputs inputs, const Attributes& attributes) {
  Specs outputs = infer_binary(inputs, attributes);
  if (!is_floating(outputs[0].dtype)) {
    ForwardCall(inputs, attributes).refuse("the quotient of integers is not an integer; cast one of them to f32");
  }
  return outputs;
}

// The inverse scale is one number in f32, or in f64 for those who compute all in f64.
Specs infer_unscale(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  if (call[1].dtype != DataType::float32 && call[1].dtype != DataType::float64) {
    call.refuse("the inverse scale is not f32; cast it");
  }
  if (!call.shape(1).empty()) call.need_shape(1, {1}, "inverse scale");
  const DataType dtype = call[0].dtype == DataType::float64 ? DataType::float64 : DataType::float32;
  return {like_inputs(inputs, dtype, call.shape(0)), make_spec(DataType::float32, {1})};
}

// The last dim holds the gate and then the factor, unless the factor is an input of its own.
Specs infer_silu_mul(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  for (std::size_t i = 0; i < call.size(); ++i) call.need_floating(i);
  Dims shape = call.shape(0);
  if (call.size() == 2) {
    call.need_shape(1, shape, "factor");
  } else {
    const std::size_t last = call.axis(-1, shape.size());
    if (shape[last] % 2 != 0) call.refuse("the last extent is odd; give the gate and the factor side by side in it");
    shape[last] /= 2;
  }
  return {like_inputs(inputs, promote(inputs), shape)};
}

constexpr InputSpec one_input[] = {{.name = "input", .in_place = any_output}};
constexpr InputSpec positive_input[] = {{.name = "input", .values = InputValues::positive, .in_place = any_output}};
constexpr InputSpec two_inputs[] = {{.name = "input", .in_place = any_output},
                                    {.name = "other", .or_number = true, .in_place = any_output}};
constexpr InputSpec quotient_inputs[] = {
    {.name = "input", .in_place = any_output},
    {.name = "other", .or_number = true, .values = InputValues::positive, .in_place = any_output}};
// The seed is an input so that a new one needs no new decision.
constexpr InputSpec dropout_inputs[] = {
    {.name = "input", .in_place = any_output},
    {.name = "seed_and_offset", .optional = true, .values = InputValues::count, .gradient = false}};
constexpr InputSpec silu_mul_inputs[] = {
    {.name = "input", .gradient = false, .in_place = any_output},
    {.name = "other", .optional = true, .gradient = false, .in_place = any_output}};
// Computed in f32 or f64 whatever rules say, by its own definition.
constexpr InputSpec unscale_inputs[] = {
    {.name = "input", .follows_precision = false, .in_place = 0b01},
    {.name = "inverse_scale", .or_number = true, .gradient = false, .follows_precision = false}};

constexpr AttributeSpec gelu_attributes[] = {choice("approximate", "none|tanh")};
constexpr AttributeSpec dropout_attributes[] = {real("p", 0.5), integer("seed", 0), boolean("training", true)};

constexpr OpInfo unary_row(Id id, std::string_view name, Kind category, AutocastSide autocast,
                           std::string_view summary) {
  return {.id = id,
          .name = name,
          .category = category,
          .summary = summary,
          .inputs = one_input,
          .infer = infer_unary_float,
          .rounding = Rounding::function,
          .autocast = autocast};
}

constexpr OpInfo binary_row(Id id, std::string_view name, std::string_view aliases, std::string_view autocast_name,
                            std::string_view parameters, std::string_view summary) {
  return {.id = id,
          .name = name,
          .aliases = aliases,
          .category = Kind::elementwise,
          .summary = summary,
          .inputs = id == Id::div ? std::span<const InputSpec>(quotient_inputs) : two_inputs,
          .infer = id == Id::div ? infer_divide : infer_binary,
          .rounding = Rounding::few_operations,
          .autocast = lower,
          .autocast_names = autocast_name,
          .parameters = parameters};
}

constexpr OpInfo with(OpInfo row, std::string_view aliases, InferOutputs infer, Rounding rounding,
                      std::span<const InputSpec> inputs = one_input, std::span<const AttributeSpec> attributes = {}) {
  row.aliases = aliases;
  row.infer = infer;
  row.rounding = rounding;
  row.inputs = inputs;
  row.attributes = attributes;
  return row;
}

constexpr std::string_view scaled_sum = "input, other, *, alpha: float = 1";

constexpr OpInfo rows[] = {
    with(unary_row(Id::relu, "relu", Kind::activation, lower, "The larger of each element and 0."), "", infer_relu,
         Rounding::exact),
    with(unary_row(Id::gelu, "gelu", Kind::activation, lower,
                   "The Gaussian error linear unit of each element, exact or by its approximation with tanh."),
         "", infer_unary_float, Rounding::gelu, one_input, gelu_attributes),
    with(unary_row(Id::silu, "silu", Kind::activation, AutocastSide::category,
                   "Each element times its sigmoid; also called swish."),
         "swish", infer_unary_float, Rounding::function),
    {.id = Id::silu_mul,
     .name = "silu_mul",
     .aliases = "swiglu|silu_and_mul",
     .category = Kind::activation,
     .summary = "silu of the first half of the last dim times its second half, or silu of one array times another.",
     .inputs = silu_mul_inputs,
     .infer = infer_silu_mul,
     .rounding = Rounding::function},
    unary_row(Id::sigmoid, "sigmoid", Kind::activation, lower, "The logistic function of each element."),
    unary_row(Id::tanh, "tanh", Kind::activation, lower, "The hyperbolic tangent of each element."),
    with(unary_row(Id::log, "log", Kind::elementwise, higher, "The natural logarithm of each element."), "",
         infer_unary_float, Rounding::function, positive_input),
    unary_row(Id::exp, "exp", Kind::elementwise, higher, "The exponential of each element."),
    with(unary_row(Id::sqrt, "sqrt", Kind::elementwise, higher, "The square root of each element."), "",
         infer_unary_float, Rounding::few_operations, positive_input),
    binary_row(Id::add, "add", "elementwise_add", "elementwise_add", scaled_sum,
               "Adds two arrays element by element, with broadcasting."),
    binary_row(Id::sub, "sub", "elementwise_sub|subtract", "elementwise_sub", scaled_sum,
               "Subtracts the second array from the first element by element, with broadcasting."),
    binary_row(Id::mul, "mul", "elementwise_mul|multiply", "elementwise_mul", "",
               "Multiplies two arrays element by element, with broadcasting."),
    binary_row(Id::div, "div", "elementwise_div|divide", "elementwise_div", "",
               "Divides the first array by the second element by element, with broadcasting."),
    {.id = Id::dropout,
     .name = "dropout",
     .category = Kind::elementwise,
     .summary = "Zeroes elements with probability p and divides the others by 1 - p; copies when not training.",
     .inputs = dropout_inputs,
     .attributes = dropout_attributes,
     .infer = infer_dropout,
     .rounding = Rounding::few_operations,
     .autocast = lower,
     .parameters = "input, p, training, *, seed: int | None = None"},
    {.id = Id::unscale,
     .name = "unscale",
     .category = Kind::elementwise,
     .summary = "Multiplies gradients by the inverse of a loss scale, and says whether any is infinite or NaN.",
     .inputs = unscale_inputs,
     .infer = infer_unscale,
     .outputs = 2,
     .sample = "T[64,64], f32[1]",
     .rounding = Rounding::few_operations},
};

}  // namespace

std::span<const OpInfo> elementwise() { return rows; }

}  // namespace xpuruntime::op_rows
