#include <cmath>
#include <limits>

#include "core/ops/schema.h"

// Functions of one element and of two, as models use them between their products. All are forward only.

namespace xpuruntime::op_rows {
namespace {

Specs like_first(Inputs inputs) { return {like_inputs(inputs, inputs[0].dtype, inputs[0].shape)}; }

Specs infer_function(Inputs inputs, const Attributes& attributes) {
  ForwardCall(inputs, attributes).need_floating(0);
  return like_first(inputs);
}

Specs infer_numeric(Inputs inputs, const Attributes& attributes) {
  ForwardCall(inputs, attributes).need_numeric(0);
  return like_first(inputs);
}

Specs infer_pair(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  call.need_numeric(1);
  return {like_inputs(inputs, promote(inputs), call.broadcast(call.shape(0), call.shape(1)))};
}

Specs infer_trunc_div(Inputs inputs, const Attributes& attributes) {
  Specs outputs = infer_pair(inputs, attributes);
  if (is_floating(outputs[0].dtype)) ForwardCall(inputs, attributes).refuse("it divides integers; use div");
  return outputs;
}

// A bound that is no integer would make another dtype of integers.
Specs infer_clip(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  for (const char* name : {"min", "max"}) {
    const double bound = attributes.real(name);
    if (std::isnan(bound)) call.refuse(std::string(name) + " is NaN; give a number");
    if (is_floating(call[0].dtype) || std::isinf(bound)) continue;
    if (bound != std::trunc(bound)) {
      call.refuse(std::string(name) + " is no integer and the input's elements are; cast the input to f32");
    }
  }
  return like_first(inputs);
}

// The slope broadcasts to the input, and not the input to the slope.
Specs infer_prelu(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  call.need_floating(1);
  if (call.broadcast(call.shape(0), call.shape(1)) != call.shape(0)) {
    call.refuse("the slope has more elements than the input; give one that broadcasts to " + to_string(call.shape(0)));
  }
  return {like_inputs(inputs, promote(inputs), call.shape(0))};
}

constexpr InputSpec one_input[] = {{.name = "input", .gradient = false, .in_place = any_output}};
constexpr InputSpec positive_input[] = {
    {.name = "input", .values = InputValues::positive, .gradient = false, .in_place = any_output}};
constexpr InputSpec two_inputs[] = {{.name = "input", .gradient = false, .in_place = any_output},
                                    {.name = "other", .or_number = true, .gradient = false, .in_place = any_output}};
constexpr InputSpec power_inputs[] = {
    {.name = "input", .values = InputValues::positive, .gradient = false, .in_place = any_output},
    {.name = "exponent", .or_number = true, .gradient = false, .in_place = any_output}};
constexpr InputSpec quotient_inputs[] = {
    {.name = "input", .gradient = false, .in_place = any_output},
    {.name = "other", .or_number = true, .values = InputValues::positive, .gradient = false, .in_place = any_output}};
constexpr InputSpec prelu_inputs[] = {{.name = "input", .gradient = false, .in_place = any_output},
                                      {.name = "weight", .gradient = false}};

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr AttributeSpec clip_attributes[] = {real("min", -unbounded), real("max", unbounded)};
constexpr AttributeSpec leaky_relu_attributes[] = {real("negative_slope", 0.01)};
constexpr AttributeSpec elu_attributes[] = {real("alpha", 1)};
constexpr AttributeSpec hard_sigmoid_attributes[] = {real("alpha", 1.0 / 6), real("beta", 0.5)};

constexpr OpInfo row(Id id, std::string_view name, std::string_view aliases, std::string_view summary,
                     InferOutputs infer = infer_function, Rounding rounding = Rounding::function,
                     std::span<const InputSpec> inputs = one_input) {
  return {.id = id,
          .name = name,
          .aliases = aliases,
          .category = Kind::elementwise,
          .summary = summary,
          .inputs = inputs,
          .infer = infer,
          .rounding = rounding};
}

constexpr OpInfo activation(OpInfo row, std::span<const AttributeSpec> attributes = {}) {
  row.category = Kind::activation;
  row.attributes = attributes;
  return row;
}

constexpr OpInfo clip_row() {
  OpInfo clip =
      row(Id::clip, "clip", "clamp", "Each element, held between min and max; NaN stays.", infer_clip, Rounding::exact);
  clip.attributes = clip_attributes;
  clip.parameters = "input, min=None, max=None";
  return clip;
}

constexpr OpInfo trunc_div_row() {
  OpInfo quotient = row(Id::trunc_div, "trunc_div", "", "The quotient of two integers, cut off; by 0 it is 0.",
                        infer_trunc_div, Rounding::exact, quotient_inputs);
  quotient.sample = "i32[64,64], i32[64,64]";
  return quotient;
}

constexpr auto few = Rounding::few_operations;

constexpr OpInfo rows[] = {
    row(Id::abs, "abs", "absolute", "Each element without its sign.", infer_numeric, Rounding::exact),
    row(Id::neg, "neg", "negative", "Each element with the other sign.", infer_numeric, Rounding::exact),
    row(Id::sign, "sign", "", "-1, 0 or 1, by the sign of each element; NaN stays.", infer_numeric, Rounding::exact),
    row(Id::floor, "floor", "", "The largest integer that is not above each element.", infer_function, Rounding::exact),
    row(Id::ceil, "ceil", "", "The smallest integer that is not below each element.", infer_function, Rounding::exact),
    row(Id::round, "round", "", "The integer nearest to each element, of two the even one.", infer_function,
        Rounding::exact),
    row(Id::reciprocal, "reciprocal", "", "1 divided by each element.", infer_function, few, positive_input),
    row(Id::erf, "erf", "", "The error function of each element."),
    row(Id::sin, "sin", "", "The sine of each element."),
    row(Id::cos, "cos", "", "The cosine of each element."),
    row(Id::tan, "tan", "", "The tangent of each element."),
    row(Id::asin, "asin", "arcsin", "The arc sine of each element."),
    row(Id::acos, "acos", "arccos", "The arc cosine of each element."),
    row(Id::atan, "atan", "arctan", "The arc tangent of each element."),
    row(Id::sinh, "sinh", "", "The hyperbolic sine of each element."),
    row(Id::cosh, "cosh", "", "The hyperbolic cosine of each element."),
    row(Id::asinh, "asinh", "arcsinh", "The inverse hyperbolic sine of each element."),
    row(Id::acosh, "acosh", "arccosh", "The inverse hyperbolic cosine of each element."),
    row(Id::atanh, "atanh", "arctanh", "The inverse hyperbolic tangent of each element."),
    row(Id::maximum, "maximum", "", "The larger of two elements; NaN where one of them is.", infer_pair,
        Rounding::exact, two_inputs),
    row(Id::minimum, "minimum", "", "The smaller of two elements; NaN where one of them is.", infer_pair,
        Rounding::exact, two_inputs),
    row(Id::pow, "pow", "power", "The first array to the power of the second, element by element.", infer_pair,
        Rounding::function, power_inputs),
    row(Id::remainder, "remainder", "mod",
        "What is left of a division whose quotient is rounded down: of the second array's sign. Of integers by 0: 0.",
        infer_pair, few, quotient_inputs),
    row(Id::fmod, "fmod", "",
        "What is left of a division whose quotient is cut off: of the first array's sign. Of integers by 0: 0.",
        infer_pair, few, quotient_inputs),
    trunc_div_row(),
    clip_row(),
    activation(row(Id::softplus, "softplus", "", "log(1 + exp(x)) of each element x.")),
    activation(row(Id::leaky_relu, "leaky_relu", "", "Each element, times negative_slope where it is negative.",
                   infer_function, few),
               leaky_relu_attributes),
    activation(row(Id::prelu, "prelu", "", "Each element, times its weight where it is negative.", infer_prelu, few,
                   prelu_inputs)),
    activation(row(Id::elu, "elu", "", "Each element x, or alpha (exp(x) - 1) where it is negative."), elu_attributes),
    activation(row(Id::hard_sigmoid, "hard_sigmoid", "", "alpha x + beta of each element x, held between 0 and 1.",
                   infer_function, Rounding::largest),
               hard_sigmoid_attributes),
    activation(row(Id::hard_swish, "hard_swish", "", "Each element x times (x / 6 + 1 / 2) held between 0 and 1.",
                   infer_function, Rounding::gelu)),
};

}  // namespace

std::span<const OpInfo> pointwise() { return rows; }

}  // namespace xpuruntime::op_rows
