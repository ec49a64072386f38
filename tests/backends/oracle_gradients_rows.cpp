#include <algorithm>

#include "backends/oracle_gradients.h"

namespace xpuruntime::oracle {
namespace {

/// The softmax of a line with its errors: those of the logarithm's are relative ones of the exponential.
std::vector<Approximate> softmax_of(const Values& line) {
  std::vector<Approximate> out;
  const double highest = line.empty() ? 0 : *std::max_element(line.begin(), line.end());
  double sum = 0;
  for (const double x : line) sum += std::exp(x - highest);
  const double units = sum_units(static_cast<double>(line.size())) + 2 * function_units + 4;
  for (const double x : line) {
    const double y = std::exp(x - highest) / sum;
    // The difference is rounded once, and once more in each term of the sum.
    const double moved = std::fabs(x) + std::fabs(highest) + std::fabs(x - highest);
    out.push_back({y, y * (units + 2 * moved)});
  }
  return out;
}

/// `all` is the sum of g y over the line, or of g for log_softmax.
Approximate softmax_gradient(Approximate y, double g, Approximate all, bool log) {
  const double sizes = std::fabs(g) + std::fabs(all.value);
  if (log) {
    const double value = g - y.value * all.value;
    return {value, y.slack * std::fabs(all.value) + y.value * (all.slack + std::fabs(all.value)) + std::fabs(value)};
  }
  const double value = y.value * (g - all.value);
  return {value, y.slack * sizes + y.value * (all.slack + sizes) + 2 * std::fabs(value)};
}

/// A normalised row with the errors of its elements.
struct NormalRow {
  std::vector<Approximate> x;
  Approximate scale;
};

NormalRow normal_row(const Values& row, bool centred, double eps) {
  const double n = static_cast<double>(row.size()), units = sum_units(n) + 2;
  double mean = 0, size = 0, squares = 0;
  for (const double x : row) {
    mean += x / n;
    size += std::fabs(x) / n;
  }
  if (!centred) mean = size = 0;
  for (const double x : row) squares += (x - mean) * (x - mean) / n;
  const double mean_slack = units * size;
  // Distances are rounded before they are squared; the first-order error of the mean drops out of the sum.
  const double shaken = (units + 4) * squares + 2 * std::sqrt(squares) * (size + std::fabs(mean));
  NormalRow out;
  out.scale.value = 1 / std::sqrt(squares + eps);
  out.scale.slack = out.scale.value * (shaken / (squares + eps) / 2 + 4);
  for (const double x : row) {
    const double distance = x - mean, value = distance * out.scale.value;
    out.x.push_back({value, out.scale.value * (mean_slack + 2 * std::fabs(distance)) +
                                std::fabs(distance) * out.scale.slack + std::fabs(value)});
  }
  return out;
}

/// r (gw - mean of gw - x (mean of gw x)), x being the normalised one.
std::vector<Approximate> norm_gradients(const NormalRow& row, const Values& gw, bool centred) {
  const double n = static_cast<double>(gw.size()), units = sum_units(n) + 4;
  Approximate plain, along;
  for (std::size_t i = 0; i < gw.size(); ++i) {
    const double size = std::fabs(gw[i]) / n;
    if (centred) plain.value += gw[i] / n;
    if (centred) plain.slack += units * size;
    along.value += gw[i] * row.x[i].value / n;
    along.slack += size * row.x[i].slack + units * size * std::fabs(row.x[i].value);
  }
  std::vector<Approximate> out;
  for (std::size_t i = 0; i < gw.size(); ++i) {
    const double x = row.x[i].value, value = gw[i] - plain.value - x * along.value;
    const double sizes = std::fabs(gw[i]) + std::fabs(plain.value) + std::fabs(x * along.value);
    const double slack = plain.slack + row.x[i].slack * std::fabs(along.value) + std::fabs(x) * along.slack + 4 * sizes;
    out.push_back({row.scale.value * value,
                   row.scale.value * (slack + 2 * std::fabs(value)) + row.scale.slack * std::fabs(value)});
  }
  return out;
}

/// What the target of a position gives to each class, and the sum of it.
struct Shares {
  Values each;
  double sum = 0;
  bool counts = true;
  double weight = 1;  // in the mean's divisor
};

class ClassTargets {
 public:
  ClassTargets(const Problem& problem, const std::vector<Values>& inputs)
      : problem_(problem),
        inputs_(inputs),
        lines_(problem.inputs[0].shape, problem.inputs[0].shape.size() == 1 ? 0 : 1),
        smoothing_(problem.op == OpId::cross_entropy ? problem.attributes.real("label_smoothing") : 0) {}

  const Lines& lines() const { return lines_; }

  Shares at(std::int64_t o, std::int64_t i) const {
    const double even = smoothing_ / static_cast<double>(lines_.length);
    const bool probabilities = is_floating(problem_.inputs[1].dtype);
    const double target = probabilities ? 0 : inputs_[1][static_cast<std::size_t>(o * lines_.inner + i)];
    Shares shares;
    shares.counts = probabilities || target != static_cast<double>(problem_.attributes.integer("ignore_index"));
    shares.weight = !shares.counts ? 0 : probabilities ? 1 : weight(static_cast<std::size_t>(target));
    for (std::int64_t c = 0; c < lines_.length; ++c) {
      const double own = probabilities ? inputs_[1][lines_.index(o, i, c)] : static_cast<double>(c) == target ? 1 : 0;
      shares.each.push_back(weight(static_cast<std::size_t>(c)) * ((1 - smoothing_) * own + even));
      shares.sum += shares.each.back();
    }
    return shares;
  }

  /// What the gradient of the mean is divided by.
  double divisor() const {
    double sum = 0;
    for (std::int64_t o = 0; o < lines_.outer; ++o) {
      for (std::int64_t i = 0; i < lines_.inner; ++i) sum += at(o, i).weight;
    }
    return sum;
  }

 private:
  double weight(std::size_t c) const { return inputs_.size() == 4 ? inputs_[2][c] : 1; }

  const Problem& problem_;
  const std::vector<Values>& inputs_;
  Lines lines_;
  double smoothing_;
};

}  // namespace

std::vector<Answer> gradients_of_softmax(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  Answer out = {Values(inputs[0].size()), Values(inputs[0].size())};
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Values x = lines.line(inputs[0], o, i), g = lines.line(inputs[1], o, i);
      const std::vector<Approximate> y = softmax_of(x);
      double total = 0, size = 0, shaken = 0;  // the sums are the same for the whole line
      const bool log = problem.op == OpId::log_softmax;
      for (std::size_t p = 0; p < y.size(); ++p) {
        const double term = log ? g[p] : g[p] * y[p].value;
        total += term;
        size += std::fabs(term);
        shaken += log ? 0 : std::fabs(g[p]) * y[p].slack;
      }
      for (std::int64_t p = 0; p < lines.length; ++p) {
        const auto at = static_cast<std::size_t>(p);
        const Approximate all = {total, shaken + (sum_units(static_cast<double>(y.size())) + 2) * size};
        const Approximate result = softmax_gradient(y[at], g[at], all, log);
        out.value[lines.index(o, i, p)] = result.value;
        out.slack[lines.index(o, i, p)] = result.slack;
      }
    }
  }
  return {out};
}

// The gradients of the parameters are sums over rows.
std::vector<Answer> gradients_of_layer_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const bool centred = problem.op == OpId::layer_norm;
  const Dims& shape = problem.inputs[0].shape;
  const std::int64_t dims = centred ? problem.attributes.integer("normalized_rank") : 1;
  std::size_t length = 1;
  for (std::size_t i = shape.size() - static_cast<std::size_t>(dims); i < shape.size(); ++i) {
    length *= static_cast<std::size_t>(shape[i]);
  }
  const std::size_t rows = length == 0 ? 0 : inputs[0].size() / length;
  TermSums weight(length), bias(length);
  Answer out;
  for (std::size_t r = 0; r < rows; ++r) {
    const auto begin = static_cast<std::ptrdiff_t>(r * length);
    const Values x(inputs[0].begin() + begin, inputs[0].begin() + begin + static_cast<std::ptrdiff_t>(length));
    const NormalRow row = normal_row(x, centred, problem.attributes.real("eps"));
    Values gw;
    for (std::size_t i = 0; i < length; ++i) {
      const double g = inputs.back()[r * length + i];
      gw.push_back(g * (inputs.size() > 2 ? inputs[1][i] : 1));
      weight.add(i, g * row.x[i].value, std::fabs(g) * row.x[i].slack);
      bias.add(i, g);
    }
    for (const Approximate& result : norm_gradients(row, gw, centred)) out.add(result.value, result.slack);
  }
  std::vector<Answer> answers = {out};
  if (inputs.size() > 2) answers.push_back(weight.answer());
  if (inputs.size() > 3) answers.push_back(bias.answer());
  return answers;
}

std::vector<Answer> gradients_of_class_loss(const Problem& problem, const std::vector<Values>& inputs) {
  const ClassTargets targets(problem, inputs);
  const Lines& lines = targets.lines();
  const std::string_view reduction = problem.attributes.choice("reduction");
  const double divisor = reduction == "mean" ? targets.divisor() : 1;
  const double units = 2 * sum_units(static_cast<double>(lines.length)) + 8;
  const double divisor_units = sum_units(static_cast<double>(lines.outer * lines.inner)) + 3;
  Answer out = {Values(inputs[0].size()), Values(inputs[0].size())};
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Shares shares = targets.at(o, i);
      if (!shares.counts) continue;
      const auto position = static_cast<std::size_t>(o * lines.inner + i);
      const double g = inputs.back()[reduction == "none" ? position : 0] / divisor;
      Values x;
      for (std::int64_t c = 0; c < lines.length; ++c) x.push_back(inputs[0][lines.index(o, i, c)]);
      const std::vector<Approximate> y = softmax_of(x);
      for (std::int64_t c = 0; c < lines.length; ++c) {
        const auto at = static_cast<std::size_t>(c);
        const bool logits = problem.op == OpId::cross_entropy;
        const double chance = logits ? shares.sum * y[at].value : 0, share = shares.each[at];
        const double value = g * (chance - share);
        const double slack = logits ? shares.sum * y[at].slack + units * chance : 0;
        out.value[lines.index(o, i, c)] = value;
        out.slack[lines.index(o, i, c)] =
            std::fabs(g) * (slack + 6 * std::fabs(share)) + divisor_units * std::fabs(g) * (chance + std::fabs(share));
      }
    }
  }
  return {out};
}

}  // namespace xpuruntime::oracle
