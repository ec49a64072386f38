#include <cmath>
#include <numbers>

#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

/// Losses of the elements as they come, and then all of them reduced.
class Losses {
 public:
  void add(Approximate loss, double weight = 1) {
    out_.add(loss.value, loss.slack);
    weight_ += weight;
  }
  /// `divisor` is what batchmean divides by.
  Answer reduced(std::string_view reduction, double divisor = 1) const {
    if (reduction == "none") return out_;
    double sum = 0, size = 0, slack = 0;
    for (std::size_t i = 0; i < out_.value.size(); ++i) {
      sum += out_.value[i];
      size += std::fabs(out_.value[i]);
      slack += out_.slack[i];
    }
    const double n = static_cast<double>(out_.value.size());
    if (reduction == "mean") divisor = weight_;
    if (reduction == "sum") divisor = 1;
    Answer one;
    // The divisor may be a sum of weights, with roundings of its own.
    one.add(sum / divisor, (slack + (2 * sum_units(n) + 2) * size) / std::fabs(divisor));
    return one;
  }

 private:
  Answer out_;
  double weight_ = 0;
};

/// The scores of one sample: its log-probabilities, and the sizes of what their sum is made of.
struct Sample {
  std::vector<Approximate> logs;
  Values sizes;
};

Sample sample_of(const Problem& problem, const Values& scores, const Lines& lines, std::int64_t o, std::int64_t i) {
  Values line;
  for (std::int64_t c = 0; c < lines.length; ++c) line.push_back(scores[lines.index(o, i, c)]);
  Sample sample;
  if (problem.op == OpId::nll_loss) {
    for (const double x : line) sample.logs.push_back({x, 0});
    return sample;
  }
  LogSoftmax answer = log_softmax_of(line);
  for (const double x : line) sample.sizes.push_back(std::fabs(x) + std::fabs(answer.log_sum));
  sample.logs = std::move(answer.log_probability);
  return sample;
}

double class_weight(const std::vector<Values>& inputs, std::size_t c) { return inputs.size() == 3 ? inputs[2][c] : 1; }

/// -sum of factor(c) * weight(c) * log p(c). A kernel may sum scores and take logsumexp off once: sizes says so.
template <class Factor>
Approximate weighted(const Sample& sample, const std::vector<Values>& inputs, Factor factor) {
  Approximate out;
  const double units = sum_units(static_cast<double>(sample.logs.size())) + 3;
  for (std::size_t c = 0; c < sample.logs.size(); ++c) {
    const double f = factor(c) * class_weight(inputs, c);
    out.value -= f * sample.logs[c].value;
    out.slack += std::fabs(f) * (sample.logs[c].slack + units * sample.sizes[c]);
  }
  return out;
}

Approximate index_loss(const Sample& sample, const std::vector<Values>& inputs, std::size_t target, double smoothing) {
  const double weight = class_weight(inputs, target);
  const Approximate& l = sample.logs[target];
  Approximate loss = {-weight * l.value, std::fabs(weight) * (l.slack + std::fabs(l.value))};
  if (smoothing == 0) return loss;
  const double share = smoothing / static_cast<double>(sample.logs.size());
  const Approximate rest = weighted(sample, inputs, [&](std::size_t) { return share; });
  loss.value = (1 - smoothing) * loss.value + rest.value;
  loss.slack = (1 - smoothing) * loss.slack + rest.slack + 3 * (std::fabs(loss.value) + std::fabs(rest.value));
  return loss;
}

// The mean divides by the weights of the targets that count; where the targets are probabilities, by their number.
std::vector<Answer> solve_class_loss(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  const Lines lines(shape, shape.size() == 1 ? 0 : 1);
  const bool cross = problem.op == OpId::cross_entropy;
  const double smoothing = cross ? problem.attributes.real("label_smoothing") : 0;
  const double ignored = static_cast<double>(problem.attributes.integer("ignore_index"));
  const bool probabilities = is_floating(problem.inputs[1].dtype);
  Losses losses;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Sample sample = sample_of(problem, inputs[0], lines, o, i);
      if (probabilities) {
        const double share = smoothing / static_cast<double>(lines.length);
        losses.add(weighted(sample, inputs, [&](std::size_t c) {
          return inputs[1][lines.index(o, i, static_cast<std::int64_t>(c))] * (1 - smoothing) + share;
        }));
        continue;
      }
      const double target = inputs[1][static_cast<std::size_t>(o * lines.inner + i)];
      if (target == ignored) {
        losses.add({}, 0);
        continue;
      }
      const auto index = static_cast<std::size_t>(target);
      losses.add(index_loss(sample, inputs, index, smoothing), class_weight(inputs, index));
    }
  }
  return {losses.reduced(problem.attributes.choice("reduction"))};
}

Approximate divergence(double x, double t, bool log_target) {
  if (log_target) {
    const double p = std::exp(t);
    return {p * (t - x), (function_units + 3) * p * (std::fabs(t) + std::fabs(x))};
  }
  if (t <= 0) return {t == 0 ? 0 - t * x : std::numeric_limits<double>::quiet_NaN(), 0};
  const double l = std::log(t);
  return {t * (l - x), t * ((function_units + 3) * std::fabs(l) + 3 * std::fabs(x))};
}

Approximate poisson(double x, double t, const Attributes& attributes) {
  Approximate out;
  if (attributes.boolean("log_input")) {
    const double e = std::exp(x);
    out = {e - t * x, (function_units + 2) * e + 2 * std::fabs(t * x)};
  } else {
    const double l = std::log(x + attributes.real("eps"));
    out = {x - t * l, std::fabs(x) + std::fabs(t) * (1 + (function_units + 2) * std::fabs(l))};
  }
  if (attributes.boolean("full") && t > 1) {
    const double a = t * std::log(t), b = 0.5 * std::log(2 * std::numbers::pi * t);
    out.value += a - t + b;
    out.slack += (function_units + 4) * (a + t + b);
  }
  out.slack += std::fabs(out.value);
  return out;
}

std::vector<Answer> solve_pointwise_loss(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims shape = broadcast_shapes(problem.inputs[0].shape, problem.inputs[1].shape);
  const Broadcast x(inputs[0], problem.inputs[0].shape, shape), t(inputs[1], problem.inputs[1].shape, shape);
  Losses losses;
  for_each_position(shape, [&](const Position& at) {
    losses.add(problem.op == OpId::poisson_nll_loss
                   ? poisson(x.at(at), t.at(at), problem.attributes)
                   : divergence(x.at(at), t.at(at), problem.attributes.boolean("log_target")));
  });
  const double batch = shape.empty() ? 1 : static_cast<double>(shape[0]);
  return {losses.reduced(problem.attributes.choice("reduction"), batch)};
}

}  // namespace

std::span<const Reference> loss_references() {
  static constexpr Reference rows[] = {
      {{OpId::cross_entropy, OpId::nll_loss}, solve_class_loss, gradients_of_class_loss},
      {{OpId::kl_div, OpId::poisson_nll_loss}, solve_pointwise_loss},
  };
  return rows;
}

}  // namespace xpuruntime::oracle
