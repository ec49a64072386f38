#include <algorithm>
#include <cmath>

#include "core/backward.h"
#include "tune/slack.h"
#include "tune/slack_groups.h"

// The inputs of the forward call, then the gradient of its output.

namespace xpuruntime {
namespace {

double count_of(const TensorSpec& spec) { return static_cast<double>(element_count(spec)); }

Slack constant(const TensorSpec& spec, double slack) {
  return Slack(static_cast<std::size_t>(element_count(spec)), slack);
}

/// How many terms the gradient of an input sums up, at most.
double terms_of(const Problem& problem, std::size_t input) {
  const Problem forward = forward_of(problem);
  const double outputs = count_of(forward.outputs[0]);
  const double own = std::max(count_of(problem.inputs[input]), 1.0);
  if (input == 2) return outputs / own;  // a bias
  const bool window = problem.op == OpId::conv2d || problem.op == OpId::conv3d;
  if (window && input == 0) {  // each element meets every tap of every output channel of its group
    const Dims& weight = problem.inputs[1].shape;
    const auto groups = static_cast<double>(problem.attributes.integer("groups"));
    return count_of(problem.inputs[1]) / std::max(static_cast<double>(weight[1]) * groups, 1.0);
  }
  return outputs * summed_terms(forward) / own;
}

/// The gradients that reach what stands before an activation, relative to those behind it: their own slack, and which
/// of them a relu may have let through or not, as its argument may have had either sign.
struct BeforeActivation {
  double units = 0;
  std::vector<bool> open = {};

  explicit BeforeActivation(const Solved& solved) {
    const Problem& problem = solved.problem;
    if (problem.op != OpId::linear || problem.attributes.choice("activation") == "none") return;
    Problem forward = forward_of(problem);
    forward.attributes.set_choice("activation", "none");
    const double terms = summed_terms(forward) + 1;
    const std::vector<Slack> roots = root_of_squares(solved, forward);
    if (roots.empty()) return;
    if (problem.attributes.choice("activation") != "relu") {  // slopes of slopes are at most 0.8
      const auto largest = std::max_element(roots[0].begin(), roots[0].end());
      units = 40 + 0.8 * walk_units(terms) * (largest == roots[0].end() ? 0 : *largest);
      // Kernels that multiply bf16 alone round what goes into their products once more: by half a unit each, at random.
      constexpr double bf16_rounding = 5 * 0x1p-9;
      if (solved.stored == DataType::bfloat16) units += bf16_rounding / solved.unit;
      return;
    }
    const auto same = [](std::size_t, double value) { return value; };
    const std::vector<Slack> sums = results_of(solved, forward, changed_inputs(solved, forward, same));
    for (std::size_t i = 0; !sums.empty() && i < sums[0].size(); ++i) {
      open.push_back(std::abs(sums[0][i]) <= solved.unit * walk_units(terms) * roots[0][i]);
    }
  }
};

/// What the gradients change by where those that may be open go through or do not.
std::vector<Slack> of_open_ones(const Solved& solved, const Problem& plain, const std::vector<bool>& open) {
  if (std::find(open.begin(), open.end(), true) == open.end()) return {};
  const Operands sizes = changed_inputs(solved, plain, [](std::size_t, double value) { return std::abs(value); });
  double* gradient = sizes.inputs().back().as<double>();
  for (std::size_t i = 0; i < open.size(); ++i) gradient[i] = open[i] ? gradient[i] : 0;
  return results_of(solved, plain, sizes);
}

/// matmul, linear and the convolutions: sums of products of a gradient and the other factor.
std::vector<Slack> of_products_backward(const Solved& solved) {
  const Problem& problem = solved.problem;
  Problem plain = problem;
  if (problem.op == OpId::linear) plain.attributes.set_choice("activation", "none");
  std::vector<Slack> slacks = root_of_squares(solved, plain);
  if (slacks.empty()) return slacks;
  const BeforeActivation before(solved);
  const std::vector<Slack> open = of_open_ones(solved, plain, before.open);
  for (std::size_t input = 0; input + 1 < problem.inputs.size(); ++input) {
    const auto output = gradient_of(problem, input);
    if (!output || *output >= slacks.size()) continue;
    const double units = 1.13 * (walk_units(terms_of(problem, input)) + before.units);
    for (std::size_t i = 0; i < slacks[*output].size(); ++i) {
      slacks[*output][i] *= units;
      if (!open.empty()) slacks[*output][i] += open[*output][i] / solved.unit;
    }
  }
  return slacks;
}

/// gradient * slope: slopes are at most 1.13, and their errors at most 40 u.
std::vector<Slack> of_activation(const Solved& solved) {
  const Tensor& gradient = solved.operands.inputs().back();
  Slack slack = constant(gradient.spec(), 0);
  if (solved.problem.op == OpId::relu) return {slack};
  for (std::size_t i = 0; i < slack.size(); ++i) slack[i] = 40 * std::abs(gradient.as<double>()[i]);
  return {slack};
}

// softmax: y (g - sum of y g); log_softmax: g - y * sum of g.
std::vector<Slack> of_softmax_backward(const Solved& solved) {
  const double n = summed_terms(forward_of(solved.problem));
  const double range = 2 * largest_of(solved.operands.inputs()[0]), gradient = largest_of(solved.operands.inputs()[1]);
  const double chance = std::min(1.0, std::exp(range) / std::max(n, 1.0));
  const double units = softmax_units(n, range);
  const double sum = std::min(n, 5 * std::sqrt(n));  // of gradients, at most
  const double slack = solved.problem.op == OpId::softmax
                           ? chance * (3 * units + sum_units(n) + 6)
                           : 2 + chance * ((units + 2) * sum + walk_units(n) * std::sqrt(n));
  return {constant(solved.problem.outputs[0], slack * gradient)};
}

// The gradient of x is scale * (g - mean(g) - y mean(g y)) with y the normalized x and g = gradient * weight; that of
// the weight is the sum of gradient * y over all groups.
std::vector<Slack> of_row_norm_backward(const Solved& solved) {
  const Problem& problem = solved.problem;
  const Norm norm = norm_of(solved);
  const double* x = solved.operands.inputs()[0].as<const double>();
  const double gradient = largest_of(solved.operands.inputs().back());
  const double weight = problem.inputs.size() > 2 ? largest_of(solved.operands.inputs()[1]) : 1;
  const double n = static_cast<double>(norm.count), rows = static_cast<double>(norm.groups);
  const double mean_units = std::min(n, 12.0) + 2;
  std::vector<Slack> slacks = {{}};
  double most_y = 0, most_of_y = 0;
  for (std::int64_t row = 0; row < norm.groups; ++row) {
    const double* line = x + row * norm.count;
    const Group group = Group::of(
        line, norm.count, [](std::int64_t i) { return i; }, norm);
    double y = 0, of_y = 0;
    for (std::int64_t i = 0; i < norm.count; ++i) {
      y = std::max(y, (std::abs(line[i]) + group.mean) * group.scale);
      of_y = std::max(of_y, group.slack(line[i], 1, 0));
    }
    const double slack = (group.scale_units + 4) * (2 + y) + mean_units * (1 + y) + (1 + y) * of_y;
    slacks[0].insert(slacks[0].end(), static_cast<std::size_t>(norm.count), group.scale * gradient * weight * slack);
    most_y = std::max(most_y, y);
    most_of_y = std::max(most_of_y, of_y);
  }
  const double over_rows = gradient * std::sqrt(rows);
  for (std::size_t i = 1; i < problem.outputs.size(); ++i) {
    const bool of_weight = i == 1;
    const double slack = of_weight ? walk_units(rows) * most_y + 8 * most_of_y : walk_units(rows);
    slacks.push_back(constant(problem.outputs[i], over_rows * slack));
  }
  return slacks;
}

}  // namespace

std::vector<Slack> slack_of_backward(const Solved& solved) {
  const OpInfo& info = op_info(solved.problem.op);
  switch (info.rounding) {
    case Rounding::products:
      return of_products_backward(solved);
    case Rounding::softmax:
      return of_softmax_backward(solved);
    case Rounding::row_norm:
      return of_row_norm_backward(solved);
    case Rounding::class_loss:
    case Rounding::pointwise_loss:
      return slack_of_loss(solved);
    default:
      return info.category == OpCategory::activation ? of_activation(solved) : std::vector<Slack>();
  }
}

}  // namespace xpuruntime
