#include "core/ops/schema.h"
#include "core/pointwise_loss.h"

namespace xpuruntime::op_rows {
namespace {

void check_reduction(const ForwardCall& call, const Dims& none_shape) {
  if (call.attributes().choice("reduction") == "batchmean" && none_shape.empty()) {
    call.refuse("a tensor without dims has no batch for batchmean; use mean");
  }
}

Dims loss_shape(const ForwardCall& call, const Dims& none_shape) {
  check_reduction(call, none_shape);
  return call.attributes().choice("reduction") == "none" ? none_shape : Dims{};
}

// The scores without their class dim: one target for each.
Dims target_shape(const Dims& scores) {
  if (scores.size() == 1) return {};
  std::int64_t extents[max_rank] = {scores[0]};
  for (std::size_t i = 2; i < scores.size(); ++i) extents[i - 1] = scores[i];
  return Dims(std::span<const std::int64_t>(extents, scores.size() - 1));
}

// Scores [classes] or [batch, classes, ...], targets, and optionally a weight for each class.
Specs infer_class_loss(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const Dims& scores = call.shape(0);
  call.need_floating(0);
  if (scores.empty()) call.refuse("the scores have no class dim; reshape them to [batch, classes]");
  const Dims targets = target_shape(scores);
  const bool cross_entropy = attributes.op() == OpId::cross_entropy;
  if (cross_entropy && is_floating(call[1].dtype)) {
    call.need_shape(1, scores, "target of probabilities");
  } else {
    call.need_index(1);
    call.need_shape(1, targets, "target");
  }
  if (call.size() == 3) {
    call.need_floating(2);
    call.need_shape(2, {scores[scores.size() == 1 ? 0 : 1]}, "class weight");
  }
  if (cross_entropy && (attributes.real("label_smoothing") < 0 || attributes.real("label_smoothing") > 1)) {
    call.refuse("label_smoothing is out of range; give 0 to 1");
  }
  return {make_spec(call[0].dtype, loss_shape(call, targets))};
}

Specs infer_pointwise_loss(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  // Counts may be integers; logarithms of probabilities may not.
  if (attributes.op() == OpId::kl_div) call.need_floating(1);
  call.need_numeric(1);
  const Dims shape = call.broadcast(call.shape(0), call.shape(1));
  return {make_spec(promote(inputs), loss_shape(call, shape))};
}

constexpr std::string_view reductions = "mean|sum|none";

constexpr InputSpec class_weight{.name = "weight", .optional = true, .gradient = false, .follows_precision = false};
// Targets of a cross entropy may be probabilities, which are computed with; those of nll_loss are classes.
constexpr InputSpec cross_entropy_inputs[] = {
    {.name = "input"}, {.name = "target", .values = InputValues::index, .gradient = false}, class_weight};
constexpr InputSpec nll_loss_inputs[] = {
    {.name = "input", .partly = true},
    {.name = "target", .values = InputValues::index, .gradient = false, .follows_precision = false},
    class_weight};
constexpr InputSpec kl_div_inputs[] = {
    {.name = "input"},
    {.name = "target", .values = InputValues::positive, .logarithm = "log_target", .gradient = false}};
constexpr InputSpec poisson_inputs[] = {
    {.name = "input", .values = InputValues::positive, .logarithm = "log_input"},
    {.name = "target", .values = InputValues::count, .gradient = false, .follows_precision = false}};

constexpr AttributeSpec cross_entropy_attributes[] = {choice("reduction", reductions), integer("ignore_index", -100),
                                                      real("label_smoothing", 0)};
constexpr AttributeSpec nll_loss_attributes[] = {choice("reduction", reductions), integer("ignore_index", -100)};
constexpr AttributeSpec kl_div_attributes[] = {choice("reduction", "mean|sum|none|batchmean"), boolean("log_target")};
constexpr AttributeSpec poisson_attributes[] = {boolean("log_input", true), boolean("full"), real("eps", 1e-8),
                                                choice("reduction", reductions)};

constexpr OpInfo rows[] = {
    {.id = Id::cross_entropy,
     .name = "cross_entropy",
     .aliases = "cross_entropy_loss",
     .category = Kind::loss,
     .summary = "The cross entropy of scores and targets, which are classes or probabilities.",
     .inputs = cross_entropy_inputs,
     .attributes = cross_entropy_attributes,
     .infer = infer_class_loss,
     .sample = "T[64,64], i64[64]",
     .rounding = Rounding::class_loss,
     .autocast = higher,
     .autocast_names = "cross_entropy_loss",
     .parameters = "input, target, weight, ignore_index, reduction, label_smoothing"},
    {.id = Id::nll_loss,
     .name = "nll_loss",
     .aliases = "nll",
     .category = Kind::loss,
     .summary = "The negative log-likelihood of classes, given the logarithms of their probabilities.",
     .inputs = nll_loss_inputs,
     .attributes = nll_loss_attributes,
     .infer = infer_class_loss,
     .sample = "T[64,64], i64[64]",
     .rounding = Rounding::class_loss,
     .autocast = higher,
     .parameters = "input, target, weight, ignore_index, reduction"},
    {.id = Id::kl_div,
     .name = "kl_div",
     .aliases = "kl_div_loss",
     .category = Kind::loss,
     .summary = "The Kullback-Leibler divergence of a target from a distribution that is given by logarithms.",
     .inputs = kl_div_inputs,
     .attributes = kl_div_attributes,
     .infer = infer_pointwise_loss,
     .rounding = Rounding::pointwise_loss,
     .autocast = higher,
     .autocast_names = "kl_div_loss"},
    {.id = Id::poisson_nll_loss,
     .name = "poisson_nll_loss",
     .aliases = "poisson_nll",
     .category = Kind::loss,
     .summary = "The negative log-likelihood of counts under a Poisson distribution with the given rates.",
     .inputs = poisson_inputs,
     .attributes = poisson_attributes,
     .infer = infer_pointwise_loss,
     .rounding = Rounding::pointwise_loss,
     .autocast = higher},
};

}  // namespace

std::span<const OpInfo> loss() { return rows; }

}  // namespace xpuruntime::op_rows

namespace xpuruntime {

PointwiseLossTerms pointwise_loss_terms(const Problem& problem) {
  const Attributes& attributes = problem.attributes;
  PointwiseLossTerms terms;
  if (problem.op == OpId::kl_div) {
    terms.kind = attributes.boolean("log_target") ? PointwiseLoss::divergence_of_logs : PointwiseLoss::divergence;
  } else {
    terms.kind = attributes.boolean("log_input") ? PointwiseLoss::poisson_of_logs : PointwiseLoss::poisson;
    terms.full = attributes.boolean("full");
    terms.eps = attributes.real("eps");
  }
  const Dims shape = broadcast_shapes(problem.inputs[0].shape, problem.inputs[1].shape);
  const std::string_view reduction = attributes.choice("reduction");
  if (reduction == "mean") terms.divisor = static_cast<double>(checked_count(shape, 1));
  if (reduction == "batchmean") terms.divisor = static_cast<double>(shape[0]);
  return terms;
}

}  // namespace xpuruntime
