#include "core/op_table.h"

#include <bit>
#include <limits>

#include "core/infer.h"

namespace xpuruntime {
namespace {

constexpr AttributeSpec boolean(std::string_view name, bool value = false) {
  return {.name = name, .kind = AttributeKind::boolean, .default_value = value};
}
constexpr AttributeSpec integer(std::string_view name, std::int64_t value) {
  return {.name = name, .kind = AttributeKind::integer, .default_value = value};
}
constexpr AttributeSpec real(std::string_view name, double value) {
  return {.name = name, .kind = AttributeKind::real, .default_value = std::bit_cast<std::int64_t>(value)};
}
constexpr AttributeSpec fixed_list(std::string_view name, std::uint8_t length, std::int64_t value) {
  return {.name = name, .kind = AttributeKind::integers, .length = length, .default_value = value};
}
constexpr AttributeSpec free_list(std::string_view name) {
  return {.name = name, .kind = AttributeKind::integers, .length = 0};
}
constexpr AttributeSpec choice(std::string_view name, std::string_view choices) {
  return {.name = name, .kind = AttributeKind::choice, .choices = choices};
}
constexpr AttributeSpec dtype(std::string_view name, DataType value) {
  return {.name = name, .kind = AttributeKind::dtype, .default_value = static_cast<std::int64_t>(value)};
}

constexpr std::string_view reductions = "mean|sum|none";

constexpr AttributeSpec matmul_attributes[] = {boolean("transpose_a"), boolean("transpose_b")};
constexpr AttributeSpec linear_attributes[] = {choice("activation", "none|relu|gelu|silu")};
constexpr AttributeSpec conv2d_attributes[] = {fixed_list("stride", 2, 1), fixed_list("padding", 2, 0),
                                               fixed_list("dilation", 2, 1), integer("groups", 1)};
constexpr AttributeSpec conv3d_attributes[] = {fixed_list("stride", 3, 1), fixed_list("padding", 3, 0),
                                               fixed_list("dilation", 3, 1), integer("groups", 1)};
// A scale of 0 stands for 1 / sqrt(head size).
constexpr AttributeSpec attention_attributes[] = {boolean("causal"), real("scale", 0)};

// A kernel_size must be given; a stride of 0 stands for the kernel_size.
constexpr AttributeSpec max_pool2d_attributes[] = {fixed_list("kernel_size", 2, 0), fixed_list("stride", 2, 0),
                                                   fixed_list("padding", 2, 0), fixed_list("dilation", 2, 1),
                                                   boolean("ceil_mode")};
constexpr AttributeSpec max_pool3d_attributes[] = {fixed_list("kernel_size", 3, 0), fixed_list("stride", 3, 0),
                                                   fixed_list("padding", 3, 0), fixed_list("dilation", 3, 1),
                                                   boolean("ceil_mode")};
constexpr AttributeSpec avg_pool2d_attributes[] = {fixed_list("kernel_size", 2, 0), fixed_list("stride", 2, 0),
                                                   fixed_list("padding", 2, 0), boolean("ceil_mode"),
                                                   boolean("count_include_pad", true)};
constexpr AttributeSpec avg_pool3d_attributes[] = {fixed_list("kernel_size", 3, 0), fixed_list("stride", 3, 0),
                                                   fixed_list("padding", 3, 0), boolean("ceil_mode"),
                                                   boolean("count_include_pad", true)};

constexpr AttributeSpec batch_norm_attributes[] = {boolean("training"), real("momentum", 0.1), real("eps", 1e-5)};
constexpr AttributeSpec layer_norm_attributes[] = {integer("normalized_rank", 1), real("eps", 1e-5)};
constexpr AttributeSpec rms_norm_attributes[] = {real("eps", 1e-6)};
constexpr AttributeSpec normalize_attributes[] = {real("p", 2), integer("dim", 1), real("eps", 1e-12)};
constexpr AttributeSpec softmax_attributes[] = {integer("dim", -1)};
constexpr AttributeSpec dropout_attributes[] = {real("p", 0.5), integer("seed", 0), boolean("training", true)};
constexpr AttributeSpec gelu_attributes[] = {choice("approximate", "none|tanh")};
// No dims: all of them.
constexpr AttributeSpec reduce_attributes[] = {free_list("dim"), boolean("keepdim")};

constexpr AttributeSpec cross_entropy_attributes[] = {choice("reduction", reductions), integer("ignore_index", -100),
                                                      real("label_smoothing", 0)};
constexpr AttributeSpec nll_loss_attributes[] = {choice("reduction", reductions), integer("ignore_index", -100)};
constexpr AttributeSpec kl_div_attributes[] = {choice("reduction", "mean|sum|none|batchmean"), boolean("log_target")};
constexpr AttributeSpec poisson_attributes[] = {boolean("log_input", true), boolean("full"), real("eps", 1e-8),
                                                choice("reduction", reductions)};

constexpr AttributeSpec cast_attributes[] = {dtype("dtype", DataType::float32)};
// No dims: all of them reversed.
constexpr AttributeSpec transpose_attributes[] = {free_list("dims")};
constexpr AttributeSpec concat_attributes[] = {integer("dim", 0)};
constexpr AttributeSpec slice_attributes[] = {integer("dim", 0), integer("start", 0),
                                              integer("end", std::numeric_limits<std::int64_t>::max()),
                                              integer("step", 1)};

using Id = OpId;
using Kind = OpCategory;
constexpr std::span<const AttributeSpec> no_attributes = {};

// Inputs that have gradients, where not all floating ones do.
constexpr std::uint64_t only_first = 0b1;              // not the targets and weights of a loss, not a seed
constexpr std::uint64_t all_but_mask = 0b111;          // not what is added to the scores of an attention
constexpr std::uint64_t all_but_statistics = 0b11001;  // not the running mean and variance

// id, name, aliases, category, least and most inputs, attributes, rule, inputs that have gradients. Names are found in
// any case, with their underscores or without: an alias stands here only where it differs in letters.
constexpr OpInfo table[] = {
    {Id::matmul, "matmul", "matrix_multiply|gemm|mm|bmm", Kind::matrix, 2, 2, matmul_attributes, infer_matmul},
    {Id::linear, "linear", "dense|fully_connected", Kind::matrix, 2, 3, linear_attributes, infer_linear},
    {Id::conv2d, "conv2d", "conv", Kind::matrix, 2, 3, conv2d_attributes, infer_conv},
    {Id::conv3d, "conv3d", "", Kind::matrix, 2, 3, conv3d_attributes, infer_conv},
    {Id::attention, "attention", "sdpa|scaled_dot_product_attention", Kind::matrix, 3, 4, attention_attributes,
     infer_attention, all_but_mask},
    {Id::max_pool2d, "max_pool2d", "", Kind::pooling, 1, 1, max_pool2d_attributes, infer_max_pool},
    {Id::max_pool3d, "max_pool3d", "", Kind::pooling, 1, 1, max_pool3d_attributes, infer_max_pool},
    {Id::avg_pool2d, "avg_pool2d", "average_pool2d", Kind::pooling, 1, 1, avg_pool2d_attributes, infer_avg_pool},
    {Id::avg_pool3d, "avg_pool3d", "average_pool3d", Kind::pooling, 1, 1, avg_pool3d_attributes, infer_avg_pool},
    {Id::batch_norm1d, "batch_norm1d", "", Kind::normalization, 1, 5, batch_norm_attributes, infer_batch_norm,
     all_but_statistics},
    {Id::batch_norm2d, "batch_norm2d", "", Kind::normalization, 1, 5, batch_norm_attributes, infer_batch_norm,
     all_but_statistics},
    {Id::batch_norm3d, "batch_norm3d", "", Kind::normalization, 1, 5, batch_norm_attributes, infer_batch_norm,
     all_but_statistics},
    {Id::layer_norm, "layer_norm", "layer_normalization", Kind::normalization, 1, 3, layer_norm_attributes,
     infer_layer_norm},
    {Id::rms_norm, "rms_norm", "", Kind::normalization, 1, 2, rms_norm_attributes, infer_rms_norm},
    {Id::normalize, "normalize", "", Kind::normalization, 1, 1, normalize_attributes, infer_normalize},
    {Id::softmax, "softmax", "", Kind::reduction, 1, 1, softmax_attributes, infer_softmax},
    {Id::log_softmax, "log_softmax", "", Kind::reduction, 1, 1, softmax_attributes, infer_softmax},
    {Id::dropout, "dropout", "", Kind::elementwise, 1, 2, dropout_attributes, infer_dropout, only_first},
    {Id::relu, "relu", "", Kind::activation, 1, 1, no_attributes, infer_relu},
    {Id::gelu, "gelu", "", Kind::activation, 1, 1, gelu_attributes, infer_unary_float},
    {Id::silu, "silu", "swish", Kind::activation, 1, 1, no_attributes, infer_unary_float},
    {Id::sigmoid, "sigmoid", "", Kind::activation, 1, 1, no_attributes, infer_unary_float},
    {Id::tanh, "tanh", "", Kind::activation, 1, 1, no_attributes, infer_unary_float},
    {Id::add, "add", "elementwise_add", Kind::elementwise, 2, 2, no_attributes, infer_binary},
    {Id::sub, "sub", "elementwise_sub|subtract", Kind::elementwise, 2, 2, no_attributes, infer_binary},
    {Id::mul, "mul", "elementwise_mul|multiply", Kind::elementwise, 2, 2, no_attributes, infer_binary},
    {Id::div, "div", "elementwise_div|divide", Kind::elementwise, 2, 2, no_attributes, infer_divide},
    {Id::log, "log", "", Kind::elementwise, 1, 1, no_attributes, infer_unary_float},
    {Id::exp, "exp", "", Kind::elementwise, 1, 1, no_attributes, infer_unary_float},
    {Id::sqrt, "sqrt", "", Kind::elementwise, 1, 1, no_attributes, infer_unary_float},
    {Id::reduce_sum, "reduce_sum", "sum", Kind::reduction, 1, 1, reduce_attributes, infer_reduce},
    {Id::reduce_mean, "reduce_mean", "mean", Kind::reduction, 1, 1, reduce_attributes, infer_reduce},
    {Id::reduce_max, "reduce_max", "max|amax", Kind::reduction, 1, 1, reduce_attributes, infer_reduce},
    {Id::reduce_min, "reduce_min", "min|amin", Kind::reduction, 1, 1, reduce_attributes, infer_reduce},
    {Id::embedding, "embedding", "", Kind::lookup, 2, 2, no_attributes, infer_embedding},
    {Id::cross_entropy, "cross_entropy", "cross_entropy_loss", Kind::loss, 2, 3, cross_entropy_attributes,
     infer_class_loss, only_first},
    {Id::nll_loss, "nll_loss", "nll", Kind::loss, 2, 3, nll_loss_attributes, infer_class_loss, only_first},
    {Id::kl_div, "kl_div", "kl_div_loss", Kind::loss, 2, 2, kl_div_attributes, infer_pointwise_loss, only_first},
    {Id::poisson_nll_loss, "poisson_nll_loss", "poisson_nll", Kind::loss, 2, 2, poisson_attributes,
     infer_pointwise_loss, only_first},
    {Id::cast, "cast", "to|convert", Kind::movement, 1, 1, cast_attributes, infer_cast},
    {Id::copy, "copy", "clone|contiguous", Kind::movement, 1, 1, no_attributes, infer_copy},
    {Id::transpose, "transpose", "permute", Kind::movement, 1, 1, transpose_attributes, infer_transpose},
    {Id::concat, "concat", "cat|concatenate", Kind::movement, 1, 64, concat_attributes, infer_concat},
    {Id::slice, "slice", "", Kind::movement, 1, 1, slice_attributes, infer_slice},
    {Id::unscale, "unscale", "", Kind::elementwise, 2, 2, no_attributes, infer_unscale, only_first},
};

constexpr bool ids_are_indices() {
  std::size_t index = 0;
  for (const OpInfo& info : table) {
    if (static_cast<std::size_t>(info.id) != index++) return false;
  }
  return index == static_cast<std::size_t>(OpId::builtin_count);
}

constexpr bool attributes_fit() {
  for (const OpInfo& info : table) {
    if (word_count(info.attributes) > Attributes::max_words) return false;
  }
  return true;
}

static_assert(ids_are_indices(), "the table follows the order of OpId");
static_assert(attributes_fit(), "an op has more attributes than Attributes has room for");

}  // namespace

std::span<const OpInfo> builtin_ops() { return table; }

std::string_view to_string(OpCategory category) {
  constexpr std::string_view names[] = {"matrix",      "reduction", "loss",   "normalization", "activation",
                                        "elementwise", "pooling",   "lookup", "movement"};
  return names[static_cast<std::size_t>(category)];
}

}  // namespace xpuruntime
