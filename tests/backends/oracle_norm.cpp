#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

/// Mean and variance of some values, by two passes.
struct Moments {
  double count = 0;
  Approximate mean, variance;
};

// The mean is a sum. With distances from a mean that is off by e, the variance is off by its sum's roundings and e^2:
// the first-order term drops out. Two passes and Welford's method keep to this; E[x^2] - E[x]^2 does not.
Moments moments_of(const Values& x) {
  Moments m;
  m.count = static_cast<double>(x.size());
  double sum = 0, size = 0, squares = 0;
  for (const double v : x) {
    sum += v;
    size += std::fabs(v);
  }
  m.mean = {sum / m.count, (sum_units(m.count) + 1) * size / m.count};
  for (const double v : x) squares += (v - m.mean.value) * (v - m.mean.value);
  const double u = half_unit(DataType::float32);
  m.variance.value = squares / m.count;
  m.variance.slack = (sum_units(m.count) + 4) * m.variance.value + m.mean.slack * m.mean.slack * u;
  return m;
}

/// 1 / sqrt(x + eps): half the relative error of what stands below the root, and three operations.
Approximate inverse_root(Approximate x, double eps) {
  const double below = x.value + eps;
  const double root = 1 / std::sqrt(below);
  return {root, root * (0.5 * x.slack / below + 4)};
}

// (x - mean) * scale * weight + bias, or x * (scale * weight) + (bias - mean * scale * weight): the second way rounds
// terms of the size of x and of the mean.
Approximate normalized(double x, Approximate mean, Approximate scale, double weight, double bias) {
  const double distance = x - mean.value;
  const double factor = std::fabs(scale.value * weight);
  const double terms = (std::fabs(x) + std::fabs(mean.value)) * factor;
  return {distance * scale.value * weight + bias,
          mean.slack * factor + std::fabs(distance * weight) * scale.slack + 4 * terms + 2 * std::fabs(bias)};
}

double given(const std::vector<Values>& inputs, std::size_t which, std::size_t index, double otherwise) {
  return which < inputs.size() ? inputs[which][index] : otherwise;
}

Approximate moved(double old, Approximate now, double momentum) {
  const double a = (1 - momentum) * old, b = momentum * now.value;
  return {a + b, 3 * (std::fabs(a) + std::fabs(b)) + momentum * now.slack};
}

struct Channel {
  Approximate mean, scale;
};

std::vector<Answer> solve_batch_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const bool training = problem.attributes.boolean("training");
  const double momentum = problem.attributes.real("momentum"), eps = problem.attributes.real("eps");
  const Lines lines(problem.inputs[0].shape, 1);
  std::vector<Answer> out(problem.outputs.size());
  std::vector<Channel> channels;
  for (std::int64_t c = 0; c < lines.length; ++c) {
    const auto index = static_cast<std::size_t>(c);
    if (!training) {
      channels.push_back({{inputs[1][index], 0}, inverse_root({inputs[2][index], 0}, eps)});
      continue;
    }
    Values x;
    for (std::int64_t n = 0; n < lines.outer; ++n) {
      for (std::int64_t i = 0; i < lines.inner; ++i) x.push_back(inputs[0][lines.index(n, i, c)]);
    }
    const Moments m = moments_of(x);
    channels.push_back({m.mean, inverse_root(m.variance, eps)});
    if (out.size() < 3) continue;
    const double unbiased = m.count > 1 ? m.count / (m.count - 1) : 1;
    const Approximate mean = moved(inputs[1][index], m.mean, momentum);
    const Approximate variance =
        moved(inputs[2][index], {m.variance.value * unbiased, (m.variance.slack + 2 * m.variance.value) * unbiased},
              momentum);
    out[1].add(mean.value, mean.slack);
    out[2].add(variance.value, variance.slack);
  }
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const std::size_t c = i / static_cast<std::size_t>(lines.inner) % static_cast<std::size_t>(lines.length);
    const Approximate y =
        normalized(inputs[0][i], channels[c].mean, channels[c].scale, given(inputs, 3, c, 1), given(inputs, 4, c, 0));
    out[0].add(y.value, y.slack);
  }
  return out;
}

std::vector<Answer> solve_layer_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  std::size_t length = 1;
  for (std::int64_t i = 1; i <= problem.attributes.integer("normalized_rank"); ++i) {
    length *= static_cast<std::size_t>(shape[shape.size() - static_cast<std::size_t>(i)]);
  }
  Answer out;
  for (std::size_t start = 0; start < inputs[0].size(); start += length) {
    const auto first = inputs[0].begin() + static_cast<std::ptrdiff_t>(start);
    const Moments m = moments_of(Values(first, first + static_cast<std::ptrdiff_t>(length)));
    const Approximate scale = inverse_root(m.variance, problem.attributes.real("eps"));
    for (std::size_t i = 0; i < length; ++i) {
      const Approximate y =
          normalized(inputs[0][start + i], m.mean, scale, given(inputs, 1, i, 1), given(inputs, 2, i, 0));
      out.add(y.value, y.slack);
    }
  }
  return {out};
}

/// The p-norm of a line, its slack relative. A power carries the error of p log x, and its root takes 1/p of the sum's.
Approximate norm_of(const Values& line, double p) {
  double sum = 0, logarithm = 0;
  for (const double x : line) {
    const double size = std::fabs(x);
    sum += p == 0 ? (x != 0) : std::pow(size, p);
    if (size > 0) logarithm = std::max(logarithm, std::fabs(std::log(size)));
  }
  if (p == 0) return {sum, 0};
  const double units = sum_units(static_cast<double>(line.size())) + 1;
  if (p == 1) return {sum, units};
  if (p == 2) return {std::sqrt(sum), units / 2 + 1};
  return {std::pow(sum, 1 / p), (units + function_units * (1 + p * logarithm)) / p + 2 * function_units};
}

std::vector<Answer> solve_normalize(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  Answer out = {Values(inputs[0].size()), Values(inputs[0].size())};
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const Approximate norm = norm_of(lines.line(inputs[0], o, i), problem.attributes.real("p"));
      for (std::int64_t p = 0; p < lines.length; ++p) {
        const std::size_t at = lines.index(o, i, p);
        out.value[at] = inputs[0][at] / std::max(norm.value, problem.attributes.real("eps"));
        out.slack[at] = std::fabs(out.value[at]) * (norm.slack + 2);
      }
    }
  }
  return {out};
}

}  // namespace

std::vector<Answer> solve_rms_norm(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, -1);
  const auto length = static_cast<std::size_t>(lines.length);
  Answer out;
  for (std::size_t start = 0; start < inputs[0].size(); start += length) {
    double squares = 0;
    for (std::size_t i = 0; i < length; ++i) squares += inputs[0][start + i] * inputs[0][start + i];
    const double count = static_cast<double>(length);
    const Approximate mean = {squares / count, (sum_units(count) + 2) * squares / count};
    const Approximate scale = inverse_root(mean, problem.attributes.real("eps"));
    for (std::size_t i = 0; i < length; ++i) {
      const Approximate y = normalized(inputs[0][start + i], {}, scale, given(inputs, 1, i, 1), 0);
      out.add(y.value, y.slack);
    }
  }
  return {out};
}

std::span<const Reference> norm_references() {
  static constexpr Reference rows[] = {
      {{OpId::batch_norm1d, OpId::batch_norm2d, OpId::batch_norm3d}, solve_batch_norm},
      {OpId::layer_norm, solve_layer_norm, gradients_of_layer_norm},
      {OpId::rms_norm, solve_rms_norm, gradients_of_layer_norm},
      {OpId::normalize, solve_normalize},
  };
  return rows;
}

}  // namespace xpuruntime::oracle
