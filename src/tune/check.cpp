#include "tune/check.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elements.h"
#include "core/names.h"
#include "tune/reference.h"
#include "tune/slack.h"

namespace xpuruntime {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Winograd's transforms add numbers that are larger than the result, of neighbours too: one dimension alone could
// amplify errors 190 times. Signs are mixed, so that they mostly cancel; a wrong tile is off by far more than this.
constexpr double winograd_amplification = 32;

/// Infinities and NaN have no distance: they must be met.
double distance(double result, double expected) {
  if (result == expected || (std::isnan(result) && std::isnan(expected))) return 0;
  const double difference = std::abs(result - expected);
  return std::isfinite(expected) && !std::isnan(difference) ? difference : infinity;
}

double value_at(const Tensor& tensor, std::size_t i) {
  return load_element(tensor.dtype(), tensor.as<const std::byte>() + i * size_of(tensor.dtype()));
}

/// What the dtype makes of a value that is past its range; others are left as they are.
double within_range(DataType dtype, double value) {
  constexpr double fits_every_float = 200;  // the narrowest ends at 448
  if (!is_floating(dtype) || std::abs(value) < fits_every_float) return value;
  std::byte bytes[8];
  store_element(dtype, bytes, value);
  const double stored = load_element(dtype, bytes);
  return std::isfinite(stored) ? value : stored;
}

double largest_magnitude(const Tensor& tensor) {
  const double largest = largest_of(tensor);
  return largest == 0 ? 1 : largest;
}

}  // namespace

double reference_work(const Problem& problem) {
  double outputs = 0;
  for (const TensorSpec& spec : problem.outputs) outputs += static_cast<double>(element_count(spec));
  return outputs * std::max(summed_terms(problem), 1.0);
}

void compare(Check& check, const Computation& computation, const Tensor& result, const Tensor& expected,
             const Bound& bound) {
  const DataType dtype = result.dtype();
  const bool exact = !is_floating(dtype);
  const double scale = largest_magnitude(expected);
  const double most = bound.slack.empty() ? 0 : *std::max_element(bound.slack.begin(), bound.slack.end());
  const double least =
      lowered(computation.kernel).find("winograd") == std::string::npos ? 0 : winograd_amplification * most;
  // A cast to fewer digits rounds an input, or the result once more.
  const double everywhere = smallest_of(dtype) + computation.casting * scale;
  for (std::size_t i = 0; i < bound.slack.size(); ++i) {
    const double value = within_range(dtype, value_at(expected, i));
    const double error = distance(value_at(result, i), value);
    const double size = std::isfinite(value) ? std::abs(value) : 0;
    // (1 + 2^-10): the value that is rounded last is itself a little off, and errors of second order.
    const double rounding = epsilon_of(dtype) / 2 * size + bound.unit * std::max(bound.slack[i], least);
    const double allowed = exact ? 0 : bound.times * (rounding * (1 + 0x1p-10) + everywhere);
    check.max_abs_error = std::max(check.max_abs_error, error);
    check.within = check.within && (error == 0 || error <= allowed);
    const double ratio = error == 0 ? 0 : error / allowed;
    if (ratio < check.ratio || (ratio == check.ratio && allowed / scale <= check.tolerance)) continue;
    check.ratio = ratio;
    check.max_rel_error = error / scale;
    check.tolerance = allowed / scale;
  }
}

Check check_against_reference(const KernelRegistry& registry, const Problem& problem, const Computation& computation,
                              const Operands& operands) {
  return Reference(registry, problem, operands).compare_with(operands.outputs(), computation);
}

}  // namespace xpuruntime
