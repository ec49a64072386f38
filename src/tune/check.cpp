#include "tune/check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tune/elements.h"
#include "tune/reference.h"

namespace xpuruntime {
namespace {

bool is_matrix_op(const Problem& problem) { return op_info(problem.op).category == OpCategory::matrix; }

/// How many terms one output sums up.
double summed_terms(const Problem& problem) {
  const Dims& first = problem.inputs.front().shape;
  if (first.empty()) return 1;
  const auto count = [](const TensorSpec& spec) { return static_cast<double>(element_count(spec)); };
  if (problem.op == OpId::matmul) {
    const bool by_rows = first.size() > 1 && problem.attributes.boolean("transpose_a");
    return static_cast<double>(by_rows ? first[first.size() - 2] : first.back());
  }
  if (problem.op == OpId::softmax || problem.op == OpId::log_softmax) {
    const std::int64_t dim = problem.attributes.integer("dim");
    return static_cast<double>(
        first[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(first.size()) : dim)]);
  }
  if (problem.op == OpId::attention) return static_cast<double>(first[3] + problem.inputs[1].shape[2]);
  if (is_matrix_op(problem)) {  // weights are [out, ...]: the rest is what one output reads
    const TensorSpec& weight = problem.inputs[1];
    return count(weight) / static_cast<double>(std::max<std::int64_t>(weight.shape.empty() ? 1 : weight.shape[0], 1));
  }
  return count(problem.inputs.front()) / std::max(count(problem.outputs.front()), 1.0);
}

/// The precision that every kernel is expected to sum in, at least.
DataType summing_dtype(const Problem& problem) {
  DataType widest = DataType::float32;
  for (const TensorSpec& spec : problem.inputs) {
    if (spec.dtype == DataType::tfloat32) return DataType::tfloat32;
    if (spec.dtype == DataType::float64) widest = DataType::float64;
  }
  return widest;
}

double distance(double result, double expected) {
  if (result == expected || (std::isnan(result) && std::isnan(expected))) return 0;
  const double difference = std::abs(result - expected);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

}  // namespace

double epsilon_of(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return 0x1p-52;
    case DataType::float32:
      return 0x1p-23;
    case DataType::tfloat32:
    case DataType::float16:
      return 0x1p-10;
    case DataType::bfloat16:
      return 0x1p-7;
    case DataType::float8_e4m3:
      return 0x1p-3;
    case DataType::float8_e5m2:
      return 0x1p-2;
    default:
      return 0;  // integers are exact
  }
}

// Two roundings can show. The result is rounded once to its dtype: half an epsilon of its own magnitude, and one is
// allowed. Before that k terms are summed, each step rounding to the summing precision; the errors are independent, so
// they grow like sqrt(k) epsilons of the sum, and four of those leave room for the terms' own rounding (an exp, a
// division). A wrong term would show as 1 / sqrt(k) or more. Winograd's transforms add numbers that are larger than the
// result. A cast to fewer digits rounds an input, or the result once more. Integers must be equal.
double tolerance_of(const Problem& problem, const Computation& computation, const TensorSpec& output) {
  if (!is_floating(output.dtype)) return 0;
  const double terms = std::max(summed_terms(problem), 1.0);
  double summing = terms > 1 ? 4 * epsilon_of(summing_dtype(problem)) * std::sqrt(terms) : 0;
  if (computation.kernel == "winograd") summing *= 32;
  // An exp, a logarithm, an error function: four units of the precision that is computed in.
  const bool computes = op_info(problem.op).category != OpCategory::movement && !is_matrix_op(problem);
  return epsilon_of(output.dtype) + computation.casting + summing +
         (computes ? 4 * epsilon_of(summing_dtype(problem)) : 0);
}

double reference_work(const Problem& problem) {
  double outputs = 0;
  for (const TensorSpec& spec : problem.outputs) outputs += static_cast<double>(element_count(spec));
  return outputs * std::max(summed_terms(problem), 1.0);
}

void compare(Check& check, const Problem& problem, const Computation& computation, const Tensor& result,
             const Tensor& expected, double slack) {
  const auto count = static_cast<std::size_t>(element_count(result.spec()));
  const auto at = [](const Tensor& tensor, std::size_t i) {
    return load_element(tensor.dtype(), tensor.as<const std::byte>() + i * size_of(tensor.dtype()));
  };
  double worst = 0;
  double scale = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = at(expected, i);
    worst = std::max(worst, distance(at(result, i), value));
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  }
  // A product of few outputs may cancel to almost nothing, while its rounding errors are those of its terms: a sum of
  // k products of numbers uniform in [-1, 1] has a standard deviation of sqrt(k) / 3.
  if (is_matrix_op(problem)) scale = std::max(scale, std::sqrt(summed_terms(problem)) / 3);
  const double relative = worst == 0 ? 0 : worst / scale;
  const double tolerance = slack * tolerance_of(problem, computation, result.spec());
  check.max_abs_error = std::max(check.max_abs_error, worst);
  check.max_rel_error = std::max(check.max_rel_error, relative);
  check.tolerance = std::max(check.tolerance, tolerance);
  check.within = check.within && relative <= tolerance;
}

Check check_against_reference(const KernelRegistry& registry, const Problem& problem, const Computation& computation,
                              const Operands& operands) {
  return Reference(registry, problem, operands).compare_with(operands.outputs(), computation);
}

}  // namespace xpuruntime
