#include <algorithm>
#include <cmath>

#include "backends/oracle_references.h"

namespace xpuruntime::oracle {

double sum_units(double n) { return std::min(n, 8 * std::sqrt(n)); }

// x - m costs 1 u of itself, which the exp takes as a relative error; their sum has the mean of those, and its
// logarithm takes a relative error as an absolute one.
LogSoftmax log_softmax_of(const Values& line) {
  double most = -std::numeric_limits<double>::infinity();
  for (const double x : line) most = std::max(most, x);
  double sum = 0, spread = 0;
  for (const double x : line) {
    const double term = std::exp(x - most);
    sum += term;
    if (term > 0) spread += term * (most - x);
  }
  LogSoftmax out;
  const double logarithm = std::log(sum);
  const double common = spread / sum + sum_units(static_cast<double>(line.size())) + function_units +
                        function_units * std::fabs(logarithm);
  for (const double x : line) {
    const double value = x - most - logarithm;
    out.log_probability.push_back({value, std::fabs(x - most) + std::fabs(value) + common});
  }
  out.log_sum = most + logarithm;
  return out;
}

namespace {

// softmax is not the exp of log_softmax, but has the same errors and those of an exp and a division.
std::vector<Answer> solve_softmax(const Problem& problem, const std::vector<Values>& inputs) {
  const Lines lines(problem.inputs[0].shape, problem.attributes.integer("dim"));
  Answer out = {Values(inputs[0].size()), Values(inputs[0].size())};
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const LogSoftmax answer = log_softmax_of(lines.line(inputs[0], o, i));
      for (std::int64_t p = 0; p < lines.length; ++p) {
        const Approximate l = answer.log_probability[static_cast<std::size_t>(p)];
        const bool logarithm = problem.op == OpId::log_softmax;
        const double value = std::exp(l.value);
        out.value[lines.index(o, i, p)] = logarithm ? l.value : value;
        out.slack[lines.index(o, i, p)] = logarithm ? l.slack : value == 0 ? 0 : value * (l.slack + function_units + 2);
      }
    }
  }
  return {out};
}

/// What is known of one output while the inputs go by.
struct Running {
  double sum = 0, size = 0, count = 0;
  double most = -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity();

  void add(double x) {
    sum += x;
    size += std::fabs(x);
    ++count;
    if (is_above(x, most) || std::isnan(x)) most = x;  // a NaN stays: nothing compares with it
    if (is_above(least, x) || std::isnan(x)) least = x;
  }
  Approximate result(OpId op) const {
    switch (op) {
      case OpId::reduce_sum:
        return {sum, sum_units(count) * size};
      case OpId::reduce_mean:
        return {sum / count, (sum_units(count) + 2) * size / count};
      case OpId::reduce_max:
        return {most, 0};
      default:
        return {least, 0};
    }
  }
};

std::vector<Answer> solve_reduce(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.inputs[0].shape;
  std::vector<std::int64_t> dims = problem.attributes.list("dim");
  std::vector<bool> gone(shape.size(), dims.empty());
  for (const std::int64_t dim : dims) {
    gone[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim)] = true;
  }
  Dims strides = Dims::filled(shape.size(), 0);
  std::int64_t count = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (gone[i]) continue;
    strides[i] = count;
    count *= shape[i];
  }
  std::vector<Running> running(static_cast<std::size_t>(count));
  std::size_t i = 0;
  for_each_position(shape, [&](const Position& position) {
    running[static_cast<std::size_t>(dot(position, strides))].add(inputs[0][i++]);
  });
  Answer out;
  for (const Running& one : running) {
    const Approximate result = one.result(problem.op);
    out.add(result.value, result.slack);
  }
  return {out};
}

}  // namespace

std::span<const Reference> reduce_references() {
  static constexpr Reference rows[] = {
      {{OpId::softmax, OpId::log_softmax}, solve_softmax, gradients_of_softmax},
      {{OpId::reduce_sum, OpId::reduce_mean, OpId::reduce_max, OpId::reduce_min}, solve_reduce},
  };
  return rows;
}

}  // namespace xpuruntime::oracle
