#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "tune/slack.h"

// Losses are sums over samples whose errors are bounded alike: the inputs lie in a known range.

namespace xpuruntime {
namespace {

/// What a mean over samples divides by, and how well conditioned that is: class weights may have any sign.
struct Divisor {
  double samples = 1;
  double value = 1;
  double sizes = 1;

  double relative_units() const { return (sum_units(samples) + 1) * sizes / std::abs(value); }
};

double value_at(const Tensor& tensor, std::int64_t i) {
  return load_element(tensor.dtype(),
                      tensor.as<const std::byte>() + static_cast<std::size_t>(i) * size_of(tensor.dtype()));
}

bool has_weights(const Solved& solved) {
  return solved.problem.inputs.size() > (solved.problem.direction == Direction::forward ? 2u : 3u);
}

Divisor divisor_of(const Solved& solved) {
  const Tensor& targets = solved.operands.inputs()[1];
  Divisor divisor;
  const Dims& shape = solved.problem.inputs[0].shape;
  const std::int64_t classes = shape[shape.size() == 1 ? 0 : 1];
  divisor.samples = static_cast<double>(element_count(solved.problem.inputs[0]) / std::max<std::int64_t>(classes, 1));
  if (solved.problem.attributes.choice("reduction") != "mean") return divisor;
  divisor.value = divisor.sizes = divisor.samples;
  if (is_floating(targets.dtype())) return divisor;
  divisor.value = divisor.sizes = 0;
  const auto ignored = static_cast<double>(solved.problem.attributes.integer("ignore_index"));
  for (std::int64_t i = 0; i < element_count(targets.spec()); ++i) {
    const double target = value_at(targets, i);
    if (target == ignored) continue;
    const double weight =
        has_weights(solved) ? value_at(solved.operands.inputs()[2], static_cast<std::int64_t>(target)) : 1;
    divisor.value += weight;
    divisor.sizes += std::abs(weight);
  }
  return divisor;
}

/// cross_entropy and nll_loss. A kernel may sum scores and take the logarithm of the sum off once.
struct ClassLoss {
  Divisor divisor = {};
  double factors = 1;  // the sum of a sample's targets
  double weight = 1;   // the largest
  double size = 0;     // of a log-probability
  double units = 0;    // of one, absolute
  double of_chance = 0;

  explicit ClassLoss(const Solved& solved) : divisor(divisor_of(solved)) {
    const std::vector<Tensor>& inputs = solved.operands.inputs();
    const Dims& shape = solved.problem.inputs[0].shape;
    const auto classes = static_cast<double>(shape[shape.size() == 1 ? 0 : 1]);
    const double range = 2 * largest_of(inputs[0]);
    if (is_floating(inputs[1].dtype())) factors = classes * largest_of(inputs[1]) + 1;
    if (has_weights(solved)) weight = largest_of(inputs[2]);
    size = largest_of(inputs[0]);
    if (solved.problem.op == OpId::nll_loss) return;
    size += range + std::log(std::max(classes, 1.0));
    of_chance = softmax_units(classes, range);
    units = of_chance + (sum_units(classes) + 3) * size;
  }

  double one() const { return weight * factors * (units + 6 * size); }
};

std::vector<Slack> class_forward(const Solved& solved) {
  const ClassLoss loss(solved);
  const Tensor& out = solved.operands.outputs()[0];
  const std::string_view reduction = solved.problem.attributes.choice("reduction");
  Slack slack(static_cast<std::size_t>(element_count(out.spec())), loss.one());
  if (reduction == "none") return {slack};
  const double n = loss.divisor.samples;
  const double sum = n * loss.one() + (sum_units(n) + 2) * n * loss.weight * loss.factors * loss.size;
  for (std::size_t i = 0; i < slack.size(); ++i) {
    slack[i] = sum / std::abs(loss.divisor.value) + loss.divisor.relative_units() * std::abs(out.as<double>()[i]);
  }
  return {slack};
}

// (chance - target) * weight * gradient / divisor.
std::vector<Slack> class_backward(const Solved& solved) {
  const ClassLoss loss(solved);
  const double gradient = largest_of(solved.operands.inputs().back()) / std::abs(loss.divisor.value);
  const double units = loss.of_chance + sum_units(loss.factors) + 8 + loss.divisor.relative_units();
  return {Slack(static_cast<std::size_t>(element_count(solved.problem.outputs[0])),
                gradient * loss.weight * loss.factors * units)};
}

/// Losses of pairs of elements: the largest slack and size of one element's loss.
std::vector<Slack> pointwise(const Solved& solved) {
  const Attributes& attributes = solved.problem.attributes;
  const double x = largest_of(solved.operands.inputs()[0]), t = largest_of(solved.operands.inputs()[1]);
  const double logarithm = 3;  // of numbers from 0.125 on
  double one = 0, size = 0;
  // Of a target that may be a logarithm: a divergence; of an input that may be one: of counts.
  if (const auto target = input_spec(op_info(solved.problem.op), 1); !target.logarithm.empty()) {
    const bool exponent = attributes.boolean(target.logarithm);
    size = exponent ? std::exp(t) * (t + x) : t * (logarithm + x);
    one = (function_units + 3) * size;
  } else {
    const bool exponent = attributes.boolean("log_input");
    const double full = attributes.boolean("full") ? t * (logarithm + 1) + logarithm : 0;
    size = (exponent ? std::exp(x) + t * x : x + t * logarithm) + full;
    one = (function_units + 5) * size + t;
  }
  const std::string_view reduction = attributes.choice("reduction");
  Slack slack(static_cast<std::size_t>(element_count(solved.problem.outputs[0])), one);
  if (reduction == "none") return {slack};
  const Dims shape = broadcast_shapes(solved.problem.inputs[0].shape, solved.problem.inputs[1].shape);
  double n = 1;
  for (const std::int64_t extent : shape) n *= static_cast<double>(extent);
  const double batch = shape.empty() ? 1 : static_cast<double>(shape[0]);
  const double divisor = reduction == "sum" ? 1 : reduction == "mean" ? n : batch;
  return {Slack(slack.size(), n * (one + (sum_units(n) + 2) * size) / divisor)};
}

}  // namespace

std::vector<Slack> slack_of_loss(const Solved& solved) {
  const bool of_classes = op_info(solved.problem.op).rounding == Rounding::class_loss;
  const bool forward = solved.problem.direction == Direction::forward;
  if (of_classes) return forward ? class_forward(solved) : class_backward(solved);
  return forward ? pointwise(solved) : std::vector<Slack>();
}

}  // namespace xpuruntime
