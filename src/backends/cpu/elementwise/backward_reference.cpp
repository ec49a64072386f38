#include "backends/cpu/elementwise/backward_reference.h"

#include <cmath>
#include <numbers>

#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/elementwise/kernels.h"

namespace xpuruntime::cpu {
namespace {

// At 0 it is 0. NaN is not below 0: the gradient passes.
double relu(double x, double gradient) { return x <= 0 ? 0 : gradient; }

double gelu(double x, double gradient) {
  constexpr double density = 0.39894228040143267794;  // 1 / sqrt(2 pi)
  const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  return gradient * (below + x * density * std::exp(-0.5 * x * x));
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// y = x s(u) with u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
double gelu_tanh(double x, double gradient) {
  constexpr double scale = 2 * 0.79788456080286535588;
  const double s = sigmoid_of(scale * (x + 0.044715 * x * x * x));
  return gradient * (s + x * s * (1 - s) * scale * (1 + 3 * 0.044715 * x * x));
}

double silu(double x, double gradient) {
  const double s = sigmoid_of(x);
  return gradient * s * (1 + x * (1 - s));
}

double sigmoid(double x, double gradient) {
  const double s = sigmoid_of(x);
  return gradient * s * (1 - s);
}

double tanh(double x, double gradient) {
  const double y = std::tanh(x);
  return gradient * (1 - y * y);
}

/// The input and the gradient of the output in, the gradient of the input out.
Status run_slope(const Problem& problem, const RunArguments& arguments) {
  combine_reals(problem, arguments, slope_of(problem));
  return {};
}

}  // namespace

Slope slope_of(const Problem& problem) {
  switch (problem.op) {
    case OpId::gelu:
      return problem.attributes.choice("approximate") == "tanh" ? gelu_tanh : gelu;
    case OpId::silu:
      return silu;
    case OpId::sigmoid:
      return sigmoid;
    case OpId::tanh:
      return tanh;
    default:
      return relu;
  }
}

Slope slope_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu;
    case Activation::gelu:
      return gelu;
    case Activation::silu:
      return silu;
    case Activation::none:
      break;
  }
  return nullptr;
}

std::unique_ptr<const Plan> prepare_unary_backward_reference(const Problem& problem) {
  return std::make_unique<ProblemPlan>(problem, run_slope);
}

}  // namespace xpuruntime::cpu
