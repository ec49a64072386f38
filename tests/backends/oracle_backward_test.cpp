// The gradients of the oracle under test: against central differences of its own forward answers in float64, and with
// mistakes that the bounds must catch.

#include <gtest/gtest.h>

#include "backends/cases.h"
#include "backends/oracle.h"
#include "backends/oracle_gradients.h"
#include "core/backward.h"

namespace xpuruntime::oracle {
namespace {

/// The sum of the forward outputs times their gradients: its gradients are what backward gives.
double weighted_sum(const Problem& forward, const std::vector<Values>& inputs, const Values& gradient) {
  const Values out = solve(forward, inputs)[0].value;
  double sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * gradient[i];
  return sum;
}

/// By (f(x + h) - f(x - h)) / 2h: the error is h^2 times a third derivative of size 10 at most, plus 2^-53 f / h.
double difference(const Problem& forward, std::vector<Values> inputs, const Values& gradient, std::size_t input,
                  std::size_t i) {
  constexpr double h = 1e-5;
  const double x = inputs[input][i];
  inputs[input][i] = x + h;
  const double above = weighted_sum(forward, inputs, gradient);
  inputs[input][i] = x - h;
  return (above - weighted_sum(forward, inputs, gradient)) / (2 * h);
}

/// Nearer than h to where relu bends, a difference is no derivative.
void keep_off_bends(Values& values) {
  for (double& value : values) {
    if (std::fabs(value) < 1e-3) value = value < 0 ? -1e-3 : 1e-3;
  }
}

class Gradients : public ::testing::TestWithParam<const char*> {};

TEST_P(Gradients, AgreeWithDifferencesOfTheForwardAnswers) {
  const Problem problem = parse_problem(GetParam());
  const Problem forward = forward_of(problem);
  std::vector<Values> inputs = make_inputs(problem, 11, Fill::usual);
  keep_off_bends(inputs[0]);
  const std::vector<Answer> answers = solve(problem, inputs);
  const std::vector<Values> given(inputs.begin(), inputs.end() - 1);
  std::size_t compared = 0;
  ASSERT_EQ(answers.size(), problem.outputs.size());
  for (std::size_t input = 0; input < given.size(); ++input) {
    const auto output = gradient_of(problem, input);
    if (!output) continue;
    ASSERT_EQ(answers[*output].value.size(), given[input].size());
    for (std::size_t i = 0; i < given[input].size(); ++i, ++compared) {
      const double expected = difference(forward, given, inputs.back(), input, i);
      EXPECT_NEAR(answers[*output].value[i], expected, 1e-7 * (1 + std::fabs(expected))) << input << ": " << i;
    }
  }
  EXPECT_GT(compared, 0u);
}

INSTANTIATE_TEST_SUITE_P(OfSmallProblems, Gradients, ::testing::ValuesIn(cases::checks().gradients));

// Everywhere but at 0, where PyTorch's is 0, and at NaN, where the gradient passes.
TEST(Gradient, OfReluIsNothingAtZeroAndPassesNan) {
  const Values x = {-1, 0, -0.0, 2, std::numeric_limits<double>::quiet_NaN()};
  const Answer answer = solve(parse_problem("relu:backward(f64[5], f64[5])"), {x, {3, 4, 5, 6, 7}})[0];
  EXPECT_EQ(answer.value, (Values{0, 0, 0, 6, 7}));
}

TEST(Gradient, OfAnotherQuestionIsFound) {
  for (const auto& [text, wrong] : cases::checks().gradient_mistakes) {
    const Case run(parse_problem(text), 5);
    const std::vector<Answer> answers = solve(parse_problem(wrong), run.inputs());
    Result result{"made up", {}};
    for (const Answer& answer : answers) result.values.push_back(answer.value);
    EXPECT_NE(run.compare(result), "") << wrong << " was taken for " << text;
  }
}

}  // namespace
}  // namespace xpuruntime::oracle
