#include <cmath>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/base/scalar_extremes.h"
#include "backends/cpu/elementwise/kernels.h"

namespace xpuruntime::cpu {
namespace {

using RealFunction = double (*)(double);
using RealOperation = double (*)(double, double);
using IntegerOperation = std::uint64_t (*)(std::uint64_t, std::uint64_t);

double relu(double x) { return maximum(x, 0.0); }
// erfc keeps the digits of the negative tail, which 1 + erf loses.
double gelu(double x) { return 0.5 * x * std::erfc(-x * 0.70710678118654752440); }
// x (1 + tanh(u)) / 2 is x / (1 + exp(-2u)), which keeps them too.
double gelu_tanh(double x) { return x / (1 + std::exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x / (1 + std::exp(-x)); }

RealFunction function_of(const Problem& problem) {
  switch (problem.op) {
    case OpId::relu:
      return relu;
    case OpId::gelu:
      return problem.attributes.choice("approximate") == "tanh" ? gelu_tanh : gelu;
    case OpId::silu:
      return silu;
    case OpId::sigmoid:
      return sigmoid;
    case OpId::tanh:
      return std::tanh;
    case OpId::log:
      return std::log;
    case OpId::exp:
      return std::exp;
    case OpId::sqrt:
      return std::sqrt;
    default:
      return nullptr;
  }
}

RealOperation operation_of(OpId op) {
  switch (op) {
    case OpId::add:
      return [](double a, double b) { return a + b; };
    case OpId::sub:
      return [](double a, double b) { return a - b; };
    case OpId::mul:
      return [](double a, double b) { return a * b; };
    default:
      return [](double a, double b) { return a / b; };
  }
}

// Unsigned, where overflow wraps as two's complement does. There is no division: its result is never integer.
IntegerOperation integer_operation_of(OpId op) {
  switch (op) {
    case OpId::add:
      return [](std::uint64_t a, std::uint64_t b) { return a + b; };
    case OpId::sub:
      return [](std::uint64_t a, std::uint64_t b) { return a - b; };
    case OpId::mul:
      return [](std::uint64_t a, std::uint64_t b) { return a * b; };
    default:
      return nullptr;
  }
}

bool all_integers(const Problem& problem) {
  for (const TensorSpec& spec : problem.inputs) {
    if (is_floating(spec.dtype)) return false;
  }
  return !is_floating(problem.outputs[0].dtype);
}

/// One value in, one value out, through a function of doubles, or none: a cast. Integers know only relu.
Status run_unary(const Problem& problem, const RunArguments& arguments) {
  const void* in = arguments.inputs[0]->as<void>();
  void* out = arguments.outputs[0]->as<void>();
  const TensorSpec &from = problem.inputs[0], &to = problem.outputs[0];
  const RealFunction function = function_of(problem);
  if (function == nullptr) {
    convert_elements(from, in, to, out);
  } else if (all_integers(problem)) {
    map_integers(from, in, to, out, [](std::int64_t x) { return x < 0 ? 0 : x; });
  } else {
    map_reals(from, in, to, out, function);
  }
  return {};
}

/// Two values in, one value out: in double, which no sum, difference or product of two floats of at most 32 bits can
/// tell from exact but for one rounding, or in 64-bit integers, which wrap.
Status run_binary(const Problem& problem, const RunArguments& arguments) {
  const DataType a = problem.inputs[0].dtype, b = problem.inputs[1].dtype, to = problem.outputs[0].dtype;
  const IntegerOperation integers = all_integers(problem) ? integer_operation_of(problem.op) : nullptr;
  if (integers == nullptr) {
    combine_reals(problem, arguments, operation_of(problem.op));
    return {};
  }
  const auto wrapped = [integers](std::int64_t x, std::int64_t y) {
    return static_cast<std::int64_t>(integers(static_cast<std::uint64_t>(x), static_cast<std::uint64_t>(y)));
  };
  combine_elements(problem, arguments, integer_loader_of(a), integer_loader_of(b), integer_storer_of(to), wrapped);
  return {};
}

}  // namespace

std::unique_ptr<const Plan> prepare_unary_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_unary_backward_reference(problem);
  return std::make_unique<ProblemPlan>(problem, run_unary);
}

std::unique_ptr<const Plan> prepare_binary_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_binary);
}

}  // namespace xpuruntime::cpu
