#include <algorithm>

#include "core/ops/schema.h"

namespace xpuruntime::op_rows {
namespace {

// The result has the input's dtype: scales and statistics are often kept wider than the data.
Specs like_input(const ForwardCall& call) { return {make_spec(call[0].dtype, call.shape(0))}; }

void need_floats_and_eps(const ForwardCall& call) {
  for (std::size_t i = 0; i < call.size(); ++i) call.need_floating(i);
  if (call.attributes().real("eps") < 0) call.refuse("eps is negative; give 0 or more");
}

void check_batch_norm_rank(const ForwardCall& call) {
  const std::size_t rank = call.shape(0).size();
  switch (call.attributes().op()) {
    case OpId::batch_norm1d:
      if (rank != 2) call.need_rank(0, 3, "[batch, channels] or [batch, channels, length]");
      return;
    case OpId::batch_norm2d:
      return call.need_rank(0, 4, "[batch, channels, height, width]");
    default:
      return call.need_rank(0, 5, "[batch, channels, depth, height, width]");
  }
}

// Inputs in PyTorch's order: x, running_mean, running_var, weight, bias. Training with running statistics also gives
// their new values.
Specs infer_batch_norm(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  need_floats_and_eps(call);
  check_batch_norm_rank(call);
  if (call.size() == 2) call.refuse("running_mean is given without running_var; give both");
  if (call.size() == 1 && !attributes.boolean("training")) {
    call.refuse("there are no statistics to use; give running_mean and running_var, or set training");
  }
  constexpr std::string_view names[] = {"input", "running_mean", "running_var", "weight", "bias"};
  for (std::size_t i = 1; i < call.size(); ++i) call.need_shape(i, {call.shape(0)[1]}, names[i]);
  Specs outputs =
      has_channels_last(call[0]) ? Specs{like_image(call[0], call[0].dtype, call.shape(0))} : like_input(call);
  if (attributes.boolean("training") && call.size() > 2) {
    for (const std::size_t i : {1, 2}) outputs.push_back(make_spec(call[i].dtype, call.shape(i)));
  }
  return outputs;
}

Specs infer_layer_norm(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  need_floats_and_eps(call);
  const Dims& shape = call.shape(0);
  const std::int64_t count = attributes.integer("normalized_rank");
  if (count < 1 || count > static_cast<std::int64_t>(shape.size())) {
    call.refuse("normalized_rank " + std::to_string(count) + " is not from 1 to the rank " +
                std::to_string(shape.size()) + "; give the number of last dims to normalize over");
  }
  const auto size = static_cast<std::size_t>(count);
  const Dims normalized(std::span(shape.end() - size, size));
  if (call.size() > 1) call.need_shape(1, normalized, "weight");
  if (call.size() > 2) call.need_shape(2, normalized, "bias");
  return like_input(call);
}

Specs infer_rms_norm(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  need_floats_and_eps(call);
  call.axis(-1, call.shape(0).size());
  if (call.size() > 1) call.need_shape(1, {call.shape(0).back()}, "weight");
  return like_input(call);
}

Specs infer_add_rms_norm(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  need_floats_and_eps(call);
  call.axis(-1, call.shape(0).size());
  call.need_shape(1, call.shape(0), "residual");
  if (call.size() > 2) call.need_shape(2, {call.shape(0).back()}, "weight");
  return {make_spec(call[0].dtype, call.shape(0)), make_spec(call[1].dtype, call.shape(1))};
}

Specs infer_normalize(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  need_floats_and_eps(call);
  if (attributes.real("p") < 0) call.refuse("p is negative and gives no norm; give 0 or more");
  call.axis(attributes.integer("dim"), call.shape(0).size());
  return {like_inputs(inputs.first(1), call[0].dtype, call.shape(0))};
}

std::int64_t columns_of(const Problem& problem) {
  const Dims& shape = problem.inputs[0].shape;
  const std::size_t count =
      problem.op == Id::layer_norm ? static_cast<std::size_t>(problem.attributes.integer("normalized_rank")) : 1;
  std::int64_t columns = 1;
  for (std::size_t i = shape.size() - std::min(count, shape.size()); i < shape.size(); ++i) columns *= shape[i];
  return columns;
}

Sizes columns(const Problem& problem) { return {columns_of(problem)}; }
Sizes rows_of(const Problem& problem) {
  const std::int64_t width = columns_of(problem);
  return {width == 0 ? 0 : element_count(problem.inputs[0]) / width};
}

// Scales and statistics are often kept wider than the data: they are not cast with it.
constexpr InputSpec weight{.name = "weight", .optional = true, .follows_precision = false, .fill = 1};
constexpr InputSpec bias{.name = "bias", .optional = true, .follows_precision = false};

constexpr InputSpec batch_norm_inputs[] = {
    {.name = "input"},
    {.name = "running_mean", .optional = true, .gradient = false, .follows_precision = false, .in_place = 0b010},
    {.name = "running_var",
     .optional = true,
     .values = InputValues::positive,
     .gradient = false,
     .follows_precision = false,
     .in_place = 0b100,
     .fill = 1},
    weight,
    bias};
constexpr AttributeSpec batch_norm_attributes[] = {boolean("training"), real("momentum", 0.1), real("eps", 1e-5)};

constexpr InputSpec layer_norm_inputs[] = {{.name = "input"}, weight, bias};
constexpr AttributeSpec layer_norm_attributes[] = {integer("normalized_rank", 1), real("eps", 1e-5)};
constexpr SizeSpec layer_norm_sizes[] = {
    size("rows", rows_of, "rows that are normalised", varies),
    size("columns", columns, "elements of a row: the last normalized_rank extents")};

constexpr InputSpec rms_norm_inputs[] = {{.name = "input"}, weight};
constexpr AttributeSpec rms_norm_attributes[] = {real("eps", 1e-6)};
constexpr SizeSpec rms_norm_sizes[] = {size("rows", rows_of, "rows that are normalised", varies),
                                       size("columns", columns, "elements of a row: the last extent")};

// Row by row: each is read before it is written.
constexpr InputSpec add_rms_norm_inputs[] = {
    {.name = "input", .gradient = false, .in_place = 0b11},
    {.name = "residual", .gradient = false, .in_place = 0b11},
    {.name = "weight", .optional = true, .gradient = false, .follows_precision = false, .fill = 1}};

constexpr InputSpec normalize_inputs[] = {{.name = "input"}};
constexpr AttributeSpec normalize_attributes[] = {real("p", 2), integer("dim", 1), real("eps", 1e-12)};

constexpr OpInfo batch_norm_row(Id id, std::string_view name, std::string_view sample) {
  return {.id = id,
          .name = name,
          .category = Kind::normalization,
          .summary = "Normalizes each channel by its mean and variance, those of the batch in training.",
          .inputs = batch_norm_inputs,
          .attributes = batch_norm_attributes,
          .infer = infer_batch_norm,
          .sample = sample,
          .rounding = Rounding::batch_norm,
          .autocast = lower,
          .functions = id == Id::batch_norm2d ? "batch_norm" : ""};
}

constexpr OpInfo rows[] = {
    batch_norm_row(Id::batch_norm1d, "batch_norm1d", "T[64,64], T[64], T[64], T[64], T[64]"),
    batch_norm_row(Id::batch_norm2d, "batch_norm2d", "T[1,32,16,16], T[32], T[32], T[32], T[32]"),
    batch_norm_row(Id::batch_norm3d, "batch_norm3d", "T[1,32,8,16,16], T[32], T[32], T[32], T[32]"),
    {.id = Id::layer_norm,
     .name = "layer_norm",
     .aliases = "layer_normalization",
     .category = Kind::normalization,
     .summary = "Normalizes each row by its own mean and variance, then scales by the weight and adds the bias.",
     .inputs = layer_norm_inputs,
     .attributes = layer_norm_attributes,
     .infer = infer_layer_norm,
     .sizes = layer_norm_sizes,
     .sample = "T[64,64], T[64], T[64]",
     .rounding = Rounding::row_norm,
     .autocast = higher,
     .parameters = "input, normalized_shape: int | Sequence[int], weight, bias, eps"},
    {.id = Id::rms_norm,
     .name = "rms_norm",
     .aliases = "rms_normalization",
     .category = Kind::normalization,
     .summary = "Divides each row by the root of the mean of its squares, then scales by the weight.",
     .inputs = rms_norm_inputs,
     .attributes = rms_norm_attributes,
     .infer = infer_rms_norm,
     .sizes = rms_norm_sizes,
     .sample = "T[64,64], T[64]",
     .rounding = Rounding::row_norm,
     .parameters = "input, normalized_shape: int | Sequence[int], weight, eps=None"},
    {.id = Id::add_rms_norm,
     .name = "add_rms_norm",
     .category = Kind::normalization,
     .summary = "Adds the residual, and gives rms_norm of the sum as it is stored, and the sum: the next residual.",
     .inputs = add_rms_norm_inputs,
     .attributes = rms_norm_attributes,
     .infer = infer_add_rms_norm,
     .outputs = 2,
     .sizes = rms_norm_sizes,
     .sample = "T[64,64], T[64,64], T[64]",
     .rounding = Rounding::row_norm},
    {.id = Id::normalize,
     .name = "normalize",
     .category = Kind::normalization,
     .summary = "Divides by the p-norm along a dim, or by eps where that is larger.",
     .inputs = normalize_inputs,
     .attributes = normalize_attributes,
     .infer = infer_normalize,
     .rounding = Rounding::power_norm,
     .autocast = higher},
};

}  // namespace

std::span<const OpInfo> norm() { return rows; }

}  // namespace xpuruntime::op_rows
