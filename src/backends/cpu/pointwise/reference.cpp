#include <cmath>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/base/scalar_extremes.h"
#include "backends/cpu/pointwise/kernels.h"
#include "backends/cpu/pointwise/parameters.h"

namespace xpuruntime::cpu {
namespace {

using RealFunction = double (*)(double x, const Parameters& given);
using IntegerFunction = std::int64_t (*)(std::int64_t x, const Parameters& given);

double bounded(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

template <double (*function)(double)>
double plain(double x, const Parameters&) {
  return function(x);
}

RealFunction function_of(OpId op) {
  switch (op) {
    case OpId::abs:
      return plain<std::fabs>;
    case OpId::neg:
      return [](double x, const Parameters&) { return -x; };
    case OpId::sign:
      return [](double x, const Parameters&) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; };
    case OpId::floor:
      return plain<std::floor>;
    case OpId::ceil:
      return plain<std::ceil>;
    case OpId::round:
      return plain<std::nearbyint>;
    case OpId::reciprocal:
      return [](double x, const Parameters&) { return 1 / x; };
    case OpId::erf:
      return plain<std::erf>;
    case OpId::sin:
      return plain<std::sin>;
    case OpId::cos:
      return plain<std::cos>;
    case OpId::tan:
      return plain<std::tan>;
    case OpId::asin:
      return plain<std::asin>;
    case OpId::acos:
      return plain<std::acos>;
    case OpId::atan:
      return plain<std::atan>;
    case OpId::sinh:
      return plain<std::sinh>;
    case OpId::cosh:
      return plain<std::cosh>;
    case OpId::asinh:
      return plain<std::asinh>;
    case OpId::acosh:
      return plain<std::acosh>;
    case OpId::atanh:
      return plain<std::atanh>;
    case OpId::softplus:
      return [](double x, const Parameters&) { return std::log1p(std::exp(-std::fabs(x))) + (x > 0 ? x : 0); };
    case OpId::isnan:
      return [](double x, const Parameters&) { return std::isnan(x) ? 1.0 : 0.0; };
    case OpId::isinf:
      return [](double x, const Parameters&) { return std::isinf(x) ? 1.0 : 0.0; };
    case OpId::clip:
      return [](double x, const Parameters& p) { return minimum(maximum(x, p.first), p.second); };
    case OpId::leaky_relu:
      return [](double x, const Parameters& p) { return x < 0 ? x * p.first : x; };
    case OpId::elu:
      return [](double x, const Parameters& p) { return x < 0 ? p.first * std::expm1(x) : x; };
    case OpId::hard_sigmoid:
      return [](double x, const Parameters& p) { return bounded(p.first * x + p.second, 0, 1); };
    default:
      return [](double x, const Parameters&) { return x * bounded(x / 6 + 0.5, 0, 1); };
  }
}

std::int64_t wrapped(std::uint64_t x) { return static_cast<std::int64_t>(x); }
std::uint64_t bits(std::int64_t x) { return static_cast<std::uint64_t>(x); }

/// Of integers: whole bounds, cut off at the ends of 64 bits.
std::int64_t whole(double bound) {
  if (bound >= 0x1p63) return INT64_MAX;
  return bound <= -0x1p63 ? INT64_MIN : static_cast<std::int64_t>(bound);
}

/// Null: it is no function of integers.
IntegerFunction integer_function_of(const Problem& problem) {
  switch (problem.op) {
    case OpId::abs:
      return [](std::int64_t x, const Parameters&) { return x < 0 ? wrapped(0 - bits(x)) : x; };
    case OpId::neg:
      return [](std::int64_t x, const Parameters&) { return wrapped(0 - bits(x)); };
    case OpId::sign:
      return [](std::int64_t x, const Parameters&) { return std::int64_t{x > 0} - std::int64_t{x < 0}; };
    case OpId::clip:
      return [](std::int64_t x, const Parameters& p) { return minimum(maximum(x, whole(p.first)), whole(p.second)); };
    case OpId::logical_not:
      return [](std::int64_t x, const Parameters&) { return std::int64_t{x == 0}; };
    case OpId::bitwise_not:
      if (problem.inputs[0].dtype == DataType::boolean) {
        return [](std::int64_t x, const Parameters&) { return std::int64_t{x == 0}; };
      }
      return [](std::int64_t x, const Parameters&) { return ~x; };
    default:
      return nullptr;
  }
}

using RealOperation = double (*)(double, double);
using IntegerOperation = std::int64_t (*)(std::int64_t, std::int64_t);

/// Comparisons, of reals and of integers alike. Null: it is none.
template <class T>
auto comparison_of(OpId op) -> T (*)(T, T) {
  switch (op) {
    case OpId::equal:
      return [](T a, T b) { return static_cast<T>(a == b); };
    case OpId::not_equal:
      return [](T a, T b) { return static_cast<T>(a != b); };
    case OpId::less:
      return [](T a, T b) { return static_cast<T>(a < b); };
    case OpId::less_equal:
      return [](T a, T b) { return static_cast<T>(a <= b); };
    case OpId::greater:
      return [](T a, T b) { return static_cast<T>(a > b); };
    case OpId::greater_equal:
      return [](T a, T b) { return static_cast<T>(a >= b); };
    case OpId::maximum:
      return [](T a, T b) { return maximum(a, b); };
    case OpId::minimum:
      return [](T a, T b) { return minimum(a, b); };
    default:
      return nullptr;
  }
}

RealOperation operation_of(OpId op) {
  switch (op) {
    case OpId::pow:
      return std::pow;
    case OpId::fmod:
      return std::fmod;
    case OpId::remainder:
      return [](double a, double b) {
        const double left = std::fmod(a, b);
        return left != 0 && (left < 0) != (b < 0) ? left + b : left;
      };
    case OpId::prelu:
      return [](double x, double slope) { return x < 0 ? x * slope : x; };
    default:
      return comparison_of<double>(op);
  }
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {  // a fraction is cut off
    if (base != 1 && base != -1) return 0;
    return exponent % 2 == 0 ? 1 : base;
  }
  std::uint64_t result = 1;
  for (std::uint64_t factor = bits(base); exponent != 0; exponent >>= 1, factor *= factor) {
    if (exponent % 2 != 0) result *= factor;
  }
  return wrapped(result);
}

/// No quotient of 64 bits overflows but that by -1.
std::int64_t left_over(std::int64_t a, std::int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

IntegerOperation integer_operation_of(OpId op) {
  switch (op) {
    case OpId::pow:
      return power;
    case OpId::fmod:
      return left_over;
    case OpId::remainder:
      return [](std::int64_t a, std::int64_t b) {
        const std::int64_t left = left_over(a, b);
        return left != 0 && (left < 0) != (b < 0) ? left + b : left;
      };
    case OpId::trunc_div:
      return [](std::int64_t a, std::int64_t b) {
        if (b == -1) return wrapped(0 - bits(a));
        return b == 0 ? 0 : a / b;
      };
    case OpId::bitwise_and:
    case OpId::logical_and:
      return [](std::int64_t a, std::int64_t b) { return a & b; };
    case OpId::bitwise_or:
    case OpId::logical_or:
      return [](std::int64_t a, std::int64_t b) { return a | b; };
    case OpId::bitwise_xor:
    case OpId::logical_xor:
      return [](std::int64_t a, std::int64_t b) { return a ^ b; };
    case OpId::shift_left:
      return [](std::int64_t a, std::int64_t b) { return b < 0 || b > 63 ? 0 : wrapped(bits(a) << b); };
    case OpId::shift_right:
      return [](std::int64_t a, std::int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); };
    default:
      return comparison_of<std::int64_t>(op);
  }
}

/// Integers in 64 bits, where the output is floating through a double.
template <class Use>
void with_storer(DataType to, const Use& use) {
  if (!is_floating(to)) return use(integer_storer_of(to));
  use([store = storer_of(to)](void* out, std::int64_t i, std::int64_t x) { store(out, i, static_cast<double>(x)); });
}

Status run_function(const Problem& problem, const RunArguments& arguments) {
  const void* in = arguments.inputs[0]->as<void>();
  void* out = arguments.outputs[0]->as<void>();
  const TensorSpec &from = problem.inputs[0], &to = problem.outputs[0];
  const Parameters given = parameters_of(problem);
  if (is_floating(from.dtype)) {
    map_reals(from, in, to, out, [&, function = function_of(problem.op)](double x) { return function(x, given); });
    return {};
  }
  const IntegerFunction function = integer_function_of(problem);
  with_storer(to.dtype, [&](auto store) {
    map_elements(from, in, to, out, integer_loader_of(from.dtype), store,
                 [&](std::int64_t x) { return function(x, given); });
  });
  return {};
}

Status run_pair(const Problem& problem, const RunArguments& arguments) {
  const DataType a = problem.inputs[0].dtype, b = problem.inputs[1].dtype;
  if (is_floating(a) || is_floating(b)) {
    combine_reals(problem, arguments, operation_of(problem.op));
    return {};
  }
  with_storer(problem.outputs[0].dtype, [&](auto store) {
    combine_elements(problem, arguments, integer_loader_of(a), integer_loader_of(b), store,
                     integer_operation_of(problem.op));
  });
  return {};
}

}  // namespace

std::unique_ptr<const Plan> prepare_functions_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_function);
}

std::unique_ptr<const Plan> prepare_pairs_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_pair);
}

}  // namespace xpuruntime::cpu
