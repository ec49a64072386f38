#include "python/signatures.h"

#include <algorithm>

#include "python/op_hooks.h"
#include "python/registered_ops.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::python {
namespace {

using Kind = ParameterKind;
using Id = OpId;

constexpr Parameter keyword(Parameter parameter) {
  parameter.keyword_only = true;
  return parameter;
}

constexpr const char* sizes = "int | Sequence[int]";

constexpr Parameter input{"input"};
constexpr Parameter weight{"weight", Kind::optional_input, "None"};
constexpr Parameter bias{"bias", Kind::optional_input, "None"};
constexpr Parameter reduction{"reduction", Kind::choice, "'mean'"};
constexpr Parameter ignore_index{"ignore_index", Kind::integer, "-100"};
constexpr Parameter alpha = keyword({"alpha", Kind::special, "1", nullptr, "float"});

constexpr Parameter unary[] = {input};
constexpr Parameter sum_of_two[] = {input, {"other", Kind::input_or_number}, alpha};
constexpr Parameter product_of_two[] = {input, {"other", Kind::input_or_number}};
constexpr Parameter matmul[] = {input,
                                {"other"},
                                keyword({"transpose_a", Kind::boolean, "False"}),
                                keyword({"transpose_b", Kind::boolean, "False"})};
constexpr Parameter linear[] = {input, {"weight"}, bias, keyword({"activation", Kind::choice, "'none'"})};
constexpr Parameter conv[] = {input,
                              {"weight"},
                              bias,
                              {"stride", Kind::integers, "1"},
                              {"padding", Kind::special, "0", nullptr, "int | Sequence[int] | str"},
                              {"dilation", Kind::integers, "1"},
                              {"groups", Kind::integer, "1"}};
constexpr Parameter attention[] = {{"query"},
                                   {"key"},
                                   {"value"},
                                   {"attn_mask", Kind::optional_input, "None"},
                                   {"dropout_p", Kind::special, "0.0", nullptr, "float"},
                                   {"is_causal", Kind::boolean, "False", "causal"},
                                   {"scale", Kind::real, "None"}};
constexpr Parameter max_pool[] = {input,
                                  {"kernel_size", Kind::integers},
                                  {"stride", Kind::integers, "None"},
                                  {"padding", Kind::integers, "0"},
                                  {"dilation", Kind::integers, "1"},
                                  {"ceil_mode", Kind::boolean, "False"}};
constexpr Parameter avg_pool[] = {input,
                                  {"kernel_size", Kind::integers},
                                  {"stride", Kind::integers, "None"},
                                  {"padding", Kind::integers, "0"},
                                  {"ceil_mode", Kind::boolean, "False"},
                                  {"count_include_pad", Kind::boolean, "True"}};
constexpr Parameter batch_norm[] = {input,
                                    {"running_mean", Kind::optional_input, "None"},
                                    {"running_var", Kind::optional_input, "None"},
                                    weight,
                                    bias,
                                    {"training", Kind::boolean, "False"},
                                    {"momentum", Kind::real, "0.1"},
                                    {"eps", Kind::real, "1e-05"}};
constexpr Parameter layer_norm[] = {
    input, {"normalized_shape", Kind::special, nullptr, nullptr, sizes}, weight, bias, {"eps", Kind::real, "1e-05"}};
constexpr Parameter rms_norm[] = {
    input, {"normalized_shape", Kind::special, nullptr, nullptr, sizes}, weight, {"eps", Kind::real, "None"}};
constexpr Parameter normalize[] = {
    input, {"p", Kind::real, "2.0"}, {"dim", Kind::integer, "1"}, {"eps", Kind::real, "1e-12"}};
constexpr Parameter softmax[] = {input, {"dim", Kind::integer, "-1"}};
constexpr Parameter dropout[] = {input,
                                 {"p", Kind::real, "0.5"},
                                 {"training", Kind::boolean, "True"},
                                 keyword({"seed", Kind::special, "None", nullptr, "int | None"})};
constexpr Parameter gelu[] = {input, {"approximate", Kind::choice, "'none'"}};
constexpr Parameter reduce[] = {
    input, {"dim", Kind::special, "None", nullptr, "int | Sequence[int] | None"}, {"keepdim", Kind::boolean, "False"}};
constexpr Parameter embedding[] = {input, {"weight"}};
constexpr Parameter cross_entropy[] = {input,        {"target"}, weight,
                                       ignore_index, reduction,  {"label_smoothing", Kind::real, "0.0"}};
constexpr Parameter nll_loss[] = {input, {"target"}, weight, ignore_index, reduction};
constexpr Parameter kl_div[] = {input, {"target"}, reduction, {"log_target", Kind::boolean, "False"}};
constexpr Parameter poisson[] = {input,
                                 {"target"},
                                 {"log_input", Kind::boolean, "True"},
                                 {"full", Kind::boolean, "False"},
                                 {"eps", Kind::real, "1e-08"},
                                 reduction};
constexpr Parameter cast[] = {input, {"dtype", Kind::dtype}};
constexpr Parameter permute[] = {input, {"dims", Kind::special, "()", nullptr, "Sequence[int]"}};
constexpr Parameter transpose[] = {
    input, {"dim0", Kind::special, nullptr, nullptr, "int"}, {"dim1", Kind::special, nullptr, nullptr, "int"}};
constexpr Parameter concat[] = {{"tensors", Kind::inputs}, {"dim", Kind::integer, "0"}};
constexpr Parameter slice[] = {input,
                               {"dim", Kind::integer, "0"},
                               {"start", Kind::integer, "None"},
                               {"end", Kind::integer, "None"},
                               {"step", Kind::integer, "1"}};
constexpr Parameter unscale[] = {input, {"inverse_scale", Kind::input_or_number}};

constexpr Signature table[] = {
    {Id::matmul, "matmul", matmul, nullptr, matmul_after},
    {Id::linear, "linear", linear},
    {Id::conv2d, "conv2d", conv, nullptr, conv_after},
    {Id::conv3d, "conv3d", conv, nullptr, conv_after},
    {Id::attention, "attention", attention, attention_before},
    {Id::attention, "scaled_dot_product_attention", attention, attention_before},
    {Id::max_pool2d, "max_pool2d", max_pool, nullptr, pool_after},
    {Id::max_pool3d, "max_pool3d", max_pool, nullptr, pool_after},
    {Id::avg_pool2d, "avg_pool2d", avg_pool, nullptr, pool_after},
    {Id::avg_pool3d, "avg_pool3d", avg_pool, nullptr, pool_after},
    {Id::batch_norm1d, "batch_norm1d", batch_norm, nullptr, batch_norm_after},
    {Id::batch_norm2d, "batch_norm2d", batch_norm, nullptr, batch_norm_after},
    {Id::batch_norm3d, "batch_norm3d", batch_norm, nullptr, batch_norm_after},
    {Id::batch_norm2d, "batch_norm", batch_norm, batch_norm_before, batch_norm_after},
    {Id::layer_norm, "layer_norm", layer_norm, nullptr, layer_norm_after},
    {Id::rms_norm, "rms_norm", rms_norm, nullptr, rms_norm_after},
    {Id::normalize, "normalize", normalize},
    {Id::softmax, "softmax", softmax},
    {Id::log_softmax, "log_softmax", softmax},
    {Id::dropout, "dropout", dropout, nullptr, dropout_after},
    {Id::relu, "relu", unary},
    {Id::gelu, "gelu", gelu},
    {Id::silu, "silu", unary},
    {Id::sigmoid, "sigmoid", unary},
    {Id::tanh, "tanh", unary},
    {Id::add, "add", sum_of_two, alpha_before},
    {Id::sub, "sub", sum_of_two, alpha_before},
    {Id::mul, "mul", product_of_two},
    {Id::div, "div", product_of_two},
    {Id::log, "log", unary},
    {Id::exp, "exp", unary},
    {Id::sqrt, "sqrt", unary},
    {Id::reduce_sum, "reduce_sum", reduce, nullptr, reduce_after},
    {Id::reduce_mean, "reduce_mean", reduce, nullptr, reduce_after},
    {Id::reduce_max, "reduce_max", reduce, nullptr, reduce_after},
    {Id::reduce_min, "reduce_min", reduce, nullptr, reduce_after},
    {Id::reduce_sum, "sum", reduce, nullptr, reduce_after},
    {Id::reduce_mean, "mean", reduce, nullptr, reduce_after},
    {Id::reduce_max, "amax", reduce, nullptr, reduce_after},
    {Id::reduce_min, "amin", reduce, nullptr, reduce_after},
    {Id::embedding, "embedding", embedding},
    {Id::cross_entropy, "cross_entropy", cross_entropy},
    {Id::nll_loss, "nll_loss", nll_loss},
    {Id::kl_div, "kl_div", kl_div},
    {Id::poisson_nll_loss, "poisson_nll_loss", poisson},
    {Id::cast, "cast", cast},
    {Id::copy, "copy", unary},
    {Id::copy, "clone", unary},
    {Id::transpose, "transpose", transpose, nullptr, transpose_after},
    {Id::transpose, "permute", permute, nullptr, permute_after},
    {Id::concat, "concat", concat},
    {Id::concat, "cat", concat},
    {Id::slice, "slice", slice},
    {Id::unscale, "unscale", unscale},
};

constexpr bool parameters_fit() {
  return std::all_of(std::begin(table), std::end(table),
                     [](const Signature& row) { return row.parameters.size() <= max_parameters; });
}
static_assert(parameters_fit());

const char* annotation_of(const Parameter& parameter) {
  if (parameter.annotation != nullptr) return parameter.annotation;
  switch (parameter.kind) {
    case Kind::input:
      return "Array";
    case Kind::optional_input:
      return "Array | None";
    case Kind::input_or_number:
      return "Array | float";
    case Kind::inputs:
      return "Sequence[Array]";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::integers:
      return sizes;
    case Kind::choice:
      return "str";
    case Kind::dtype:
      return "DType";
    case Kind::special:
      break;
  }
  return "Any";
}

bool has_own_dtype(const Signature& signature) {
  return std::any_of(signature.parameters.begin(), signature.parameters.end(),
                     [](const Parameter& parameter) { return parameter.kind == Kind::dtype; });
}

std::string text_of(const Parameter& parameter, bool typed) {
  std::string text = parameter.name;
  const std::string fallback = parameter.fallback == nullptr ? "" : parameter.fallback;
  if (!typed) return fallback.empty() ? text : text + "=" + fallback;
  text += std::string(": ") + annotation_of(parameter);
  if (fallback == "None" && !text.ends_with("None")) text += " | None";
  return fallback.empty() ? text : text + " = " + fallback;
}

}  // namespace

std::span<const Signature> signatures() { return table; }

const Signature& find_signature(std::string_view name) {
  for (const Signature& signature : table) {
    if (name == signature.name) return signature;
  }
  const OpId op = parse_op(name);
  for (const Signature& signature : table) {
    if (op == signature.op) return signature;
  }
  if (const Signature* registered = registered_signature(op)) return *registered;
  fail(ErrorCode::not_supported, "ops",
       "the op " + std::string(name) + " was registered by a plugin and has no function here; use its problem text");
}

std::string parameter_text(const Signature& signature, bool typed) {
  std::string text;
  bool keywords = false;
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.keyword_only && !keywords) {
      text += "*, ";
      keywords = true;
    }
    text += text_of(parameter, typed) + ", ";
  }
  if (!keywords) text += "*, ";
  if (!has_own_dtype(signature)) text += typed ? "dtype: DType | None = None, " : "dtype=None, ";
  return text + (typed ? "out: Any = None" : "out=None");
}

}  // namespace xpuruntime::python
