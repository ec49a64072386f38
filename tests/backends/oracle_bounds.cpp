#include <algorithm>
#include <cmath>
#include <sstream>

#include "backends/oracle.h"
#include "core/names.h"

// The bound on one value: half a unit of the output's dtype, for its last rounding, plus u times the slack that the
// reference derived (oracle_references.h says how), plus the spacing of the dtype's smallest values.

namespace xpuruntime::oracle {
namespace {

// Winograd's F(4x4, 3x3) computes with sums of the tile's inputs that are up to 10 times as large, and its inverse
// transform sums results with coefficients that add up to 19: one dimension alone could amplify errors 190 times,
// relative to the largest window around. Signs are mixed and inputs differ, so that errors mostly cancel: 32 holds over
// all cases here with room to spare, and a wrong tile is off by far more.
constexpr double winograd_amplification = 32;

// f64 answers and f64 references round alike, so that twice the bound of one is due. TF32 is f32 of which a device may
// drop all but 10 digits of each factor first.
double unit(const Problem& problem) {
  const auto short_factor = [](const TensorSpec& spec) { return spec.dtype == DataType::tfloat32; };
  if (std::any_of(problem.inputs.begin(), problem.inputs.end(), short_factor)) return 2 * 0x1p-10;
  const auto narrow = [](const TensorSpec& spec) { return is_floating(spec.dtype) && spec.dtype != DataType::float64; };
  const auto wide = [](const TensorSpec& spec) { return spec.dtype == DataType::float64; };
  const bool any_wide = std::any_of(problem.inputs.begin(), problem.inputs.end(), wide);
  const bool any_narrow = std::any_of(problem.inputs.begin(), problem.inputs.end(), narrow);
  return any_wide && !any_narrow ? 2 * 0x1p-53 : 0x1p-24;
}

std::string difference(std::size_t i, double got, double expected, double bound) {
  std::ostringstream text;
  text.precision(9);
  text << "value " << i << " is " << got << ", not " << expected << " (off by " << std::fabs(got - expected)
       << ", bound " << bound << ")";
  return text.str();
}

/// Infinities and NaN have no distance: they must be met. Floats past the dtype's range are infinities.
bool same_kind(double got, double expected) { return std::isnan(expected) ? std::isnan(got) : got == expected; }

/// Ops that hand on one of their values: not a bit of it may change, nor the sign of a zero.
bool hands_on(const Problem& problem) {
  if (problem.direction != Direction::forward) return false;
  switch (problem.op) {
    case OpId::relu:
    case OpId::max_pool2d:
    case OpId::max_pool3d:
    case OpId::reduce_max:
    case OpId::reduce_min:
    case OpId::maximum:
    case OpId::minimum:
    case OpId::clip:
    case OpId::abs:
    case OpId::neg:
      return true;
    default:
      return false;
  }
}

bool same_number(double got, double expected) {
  return same_kind(got, expected) && (expected != 0 || std::signbit(got) == std::signbit(expected));
}

/// What a dtype makes of a value, less the rounding of finite floats.
double stored(DataType dtype, double value) {
  constexpr double fits_every_float = 200;  // the narrowest ends at 448
  if (is_floating(dtype) && std::fabs(value) < fits_every_float) return value;
  const double nearest = rounded(dtype, value);
  return is_floating(dtype) && std::isfinite(nearest) ? value : nearest;
}

}  // namespace

std::string compare_output(const Problem& problem, std::size_t output, const Answer& answer, const Values& values,
                           const std::string& kernel) {
  const DataType dtype = problem.outputs[output].dtype;
  if (values.size() != answer.value.size()) {
    return "there are " + std::to_string(values.size()) + " values, not " + std::to_string(answer.value.size());
  }
  const bool winograd = lowered(kernel).find("winograd") != std::string::npos;
  const double most =
      winograd && !answer.slack.empty() ? *std::max_element(answer.slack.begin(), answer.slack.end()) : 0;
  const double u = unit(problem);
  const bool exact = hands_on(problem);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = stored(dtype, answer.value[i]);
    const double slack = is_floating(dtype) ? std::max(answer.slack[i], winograd_amplification * most) : 0;
    // (1 + 2^-10): the value that is rounded last is itself a little off, and errors of second order.
    const double bound = (half_unit(dtype) * std::fabs(expected) + u * slack) * (1 + 0x1p-10) + smallest(dtype);
    const bool right = exact                     ? same_number(values[i], rounded(dtype, expected))
                       : std::isfinite(expected) ? std::fabs(values[i] - expected) <= bound
                                                 : same_kind(values[i], expected);
    if (!right) return difference(i, values[i], expected, exact ? 0 : bound);
  }
  return {};
}

std::string Case::compare(const Result& result) const {
  if (result.values.size() != answers_.size()) {
    return "there are " + std::to_string(result.values.size()) + " outputs, not " + std::to_string(answers_.size());
  }
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    const std::string verdict = compare_output(problem_, i, answers_[i], result.values[i], result.kernel);
    if (!verdict.empty()) return "output " + std::to_string(i) + ": " + verdict;
  }
  return result.strayed ? "something between the elements of an output was written" : "";
}

}  // namespace xpuruntime::oracle
