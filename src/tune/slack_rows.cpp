#include <algorithm>
#include <cmath>

#include "core/elements.h"
#include "tune/slack.h"
#include "tune/slack_groups.h"

namespace xpuruntime {

double softmax_units(double n, double range) {
  const double logarithm = std::log(std::max(n, 1.0));
  return 3 * range + sum_units(n) + 2 * function_units + 2 + (1 + function_units) * logarithm;
}

// Two passes, or Welford's method: the first-order error of the mean drops out of the variance.
Group Group::of(const double* x, std::int64_t count, const std::function<std::int64_t(std::int64_t)>& place,
                const Norm& norm) {
  Group group;
  const auto n = static_cast<double>(count);
  double sum = 0, squares = 0, distances = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = x[place(i)];
    sum += value;
    squares += value * value;
  }
  const double mean = norm.centred ? sum / n : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double distance = x[place(i)] - mean;
    distances += distance * distance;
  }
  group.mean = std::abs(mean);
  group.variance = distances / n;
  group.of_mean = norm.centred ? (std::min(n, 12.0) + 2) * std::sqrt(squares / n) : 0;
  group.scale = 1 / std::sqrt(group.variance + norm.eps);
  const double second_order = group.of_mean * group.of_mean * norm.unit * group.scale * group.scale;
  group.scale_units = 0.5 * (sum_units(n) + 4 + second_order) + 4;
  return group;
}

// (x - mean) * scale * weight + bias, or x * (scale * weight) + (bias - mean * scale * weight): the second way rounds
// terms of the size of x and of the mean.
double Group::slack(double x, double weight, double bias) const {
  const double factor = scale * std::abs(weight);
  const double size = std::abs(x) + mean;
  return factor * (of_mean + (4 + scale_units) * size) + 2 * std::abs(bias);
}

namespace {

const double* values(const Solved& solved, std::size_t input) {
  return input < solved.operands.inputs().size() ? solved.operands.inputs()[input].as<const double>() : nullptr;
}

double at(const double* values, std::int64_t i, double otherwise) { return values == nullptr ? otherwise : values[i]; }

/// Norms of rows, with and without their mean. Where a residual is added first, the sum is the second output, and it is
/// rounded to its own dtype, which may have fewer digits than the first output's, before it is normalized: that moves
/// an element by half a unit of it, and the scale of the row by another half at most.
std::vector<Slack> of_row_norm(const Solved& solved) {
  const Norm norm = norm_of(solved);
  const bool adds = solved.problem.outputs.size() == 2;
  const double* x = adds ? solved.operands.outputs()[1].as<const double>() : values(solved, 0);
  const double* weight = values(solved, adds ? 2 : 1);
  const double* bias = adds ? nullptr : values(solved, 2);
  const double rounded = adds ? 1 + epsilon_of(solved.last) / solved.unit : 0;
  const double least = adds ? smallest_of(solved.last) / solved.unit : 0;
  Slack slack, sum;
  for (std::int64_t row = 0; row < norm.groups; ++row) {
    const double* line = x + row * norm.count;
    const Group group = Group::of(
        line, norm.count, [](std::int64_t i) { return i; }, norm);
    for (std::int64_t i = 0; i < norm.count; ++i) {
      const double moved = rounded * std::abs(line[i]) + least;
      slack.push_back(group.slack(line[i], at(weight, i, 1), at(bias, i, 0)) +
                      moved * group.scale * std::abs(at(weight, i, 1)));
      sum.push_back(std::abs(line[i]));
    }
  }
  return adds ? std::vector<Slack>{slack, sum} : std::vector<Slack>{slack};
}

/// x, mean, variance, weight, bias; training also gives new running statistics.
std::vector<Slack> of_batch_norm(const Solved& solved) {
  const Dims& shape = solved.problem.inputs[0].shape;
  const bool training = solved.problem.attributes.boolean("training");
  const std::int64_t channels = shape[1];
  std::int64_t inner = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) inner *= shape[i];
  Norm norm;
  norm.eps = solved.problem.attributes.real("eps");
  norm.unit = solved.unit;
  norm.count = shape[0] * inner;
  const double* x = values(solved, 0);
  std::vector<Slack> slacks(solved.problem.outputs.size(), Slack(static_cast<std::size_t>(channels), 0));
  slacks[0].resize(static_cast<std::size_t>(norm.count * channels));
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto place = [&](std::int64_t i) { return (i / inner * channels + c) * inner + i % inner; };
    Group group;
    if (training) {
      group = Group::of(x, norm.count, place, norm);
    } else {
      group.mean = std::abs(values(solved, 1)[c]);
      group.scale = 1 / std::sqrt(values(solved, 2)[c] + norm.eps);
      group.scale_units = 4;
    }
    for (std::int64_t i = 0; i < norm.count; ++i) {
      slacks[0][static_cast<std::size_t>(place(i))] =
          group.slack(x[place(i)], at(values(solved, 3), c, 1), at(values(solved, 4), c, 0));
    }
    if (slacks.size() < 3) continue;
    const double unbiased = group.variance * (norm.count > 1 ? 2 : 1);
    slacks[1][static_cast<std::size_t>(c)] = 3 * (std::abs(values(solved, 1)[c]) + group.mean) + group.of_mean;
    slacks[2][static_cast<std::size_t>(c)] =
        3 * (std::abs(values(solved, 2)[c]) + unbiased) + 2 * group.scale_units * unbiased;
  }
  return slacks;
}

// A power carries the error of p log x, and its root takes 1/p of the sum's.
std::vector<Slack> of_power_norm(const Solved& solved) {
  const Tensor& out = solved.operands.outputs()[0];
  const Dims& shape = solved.problem.inputs[0].shape;
  const std::int64_t dim = solved.problem.attributes.integer("dim");
  const double n = static_cast<double>(
      shape[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim)]);
  const double p = solved.problem.attributes.real("p");
  const auto count = static_cast<std::size_t>(element_count(out.spec()));
  double logarithm = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (const double size = std::abs(values(solved, 0)[i]); size > 0) {
      logarithm = std::max(logarithm, std::abs(std::log(size)));
    }
  }
  double units = sum_units(n) + 3;  // p = 0 counts, 1 and 2 need no powers
  if (p != 0 && p != 1 && p != 2) units = (units + function_units * (1 + p * logarithm)) / p + 2 * function_units;
  if (!std::isfinite(units)) units = 0;  // the largest element
  Slack slack(count);
  for (std::size_t i = 0; i < count; ++i) slack[i] = (units + 2) * std::abs(out.as<double>()[i]);
  return {slack};
}

std::vector<Slack> of_softmax(const Solved& solved) {
  const Tensor& out = solved.operands.outputs()[0];
  const double units = softmax_units(summed_terms(solved.problem), 2 * largest_of(solved.operands.inputs()[0]));
  Slack slack(static_cast<std::size_t>(element_count(out.spec())));
  for (std::size_t i = 0; i < slack.size(); ++i) {
    const double size = std::abs(out.as<double>()[i]);
    slack[i] = solved.problem.op == OpId::softmax ? units * size : units + size;
  }
  return {slack};
}

}  // namespace

Norm norm_of(const Solved& solved) {
  const Problem& problem = solved.problem;
  const Dims& shape = problem.inputs[0].shape;
  Norm norm;
  norm.centred = problem.op == OpId::layer_norm;
  norm.eps = problem.attributes.real("eps");
  norm.unit = solved.unit;
  const std::int64_t rank = norm.centred ? problem.attributes.integer("normalized_rank") : 1;
  for (std::int64_t i = 1; i <= rank; ++i) norm.count *= shape[shape.size() - static_cast<std::size_t>(i)];
  norm.groups = norm.count == 0 ? 0 : element_count(problem.inputs[0]) / norm.count;
  return norm;
}

std::vector<Slack> slack_of_rows(const Solved& solved) {
  switch (op_info(solved.problem.op).rounding) {
    case Rounding::row_norm:
      return of_row_norm(solved);
    case Rounding::batch_norm:
      return of_batch_norm(solved);
    case Rounding::power_norm:
      return of_power_norm(solved);
    case Rounding::softmax:
      return of_softmax(solved);
    default:
      return {};
  }
}

}  // namespace xpuruntime
