// The gradients of the oracle under test: against central differences of its own forward answers in float64, and with
// mistakes that the bounds must catch.

#include <gtest/gtest.h>

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

constexpr const char* problems[] = {
    "matmul:backward(f64[3,4], f64[4,5], f64[3,5])",
    "matmul:backward(f64[4,3], f64[5,4], f64[3,5]; transpose_a=true transpose_b=true)",
    "matmul:backward(f64[4], f64[4,5], f64[5])",
    "matmul:backward(f64[2,3,4], f64[4], f64[2,3])",
    "matmul:backward(f64[4], f64[4], f64[])",
    "matmul:backward(f64[2,1,3,4], f64[3,4,2], f64[2,3,3,2])",
    "linear:backward(f64[3,4], f64[5,4], f64[5], f64[3,5])",
    "linear:backward(f64[2,3,4], f64[5,4], f64[2,3,5]; activation=gelu)",
    "linear:backward(f64[4], f64[5,4], f64[5], f64[5]; activation=silu)",
    "linear:backward(f64[3,4], f64[5,4], f64[5], f64[3,5]; activation=relu)",
    "conv2d:backward(f64[2,4,5,6], f64[6,2,3,2], f64[6], f64[2,6,3,3]; groups=2 stride=2 padding=1,0 dilation=1,1)",
    "conv2d:backward(f64[1,3,6,6], f64[3,1,3,3], f64[1,3,4,4]; groups=3 padding=1 dilation=2 stride=1)",
    "conv3d:backward(f64[1,2,3,4,4], f64[3,2,2,2,2], f64[3], f64[1,3,2,3,3])",
    "relu:backward(f64[9], f64[9])",
    "gelu:backward(f64[20], f64[20])",
    "gelu:backward(f64[20], f64[20]; approximate=tanh)",
    "silu:backward(f64[20], f64[20])",
    "sigmoid:backward(f64[20], f64[20])",
    "tanh:backward(f64[20], f64[20])",
    "softmax:backward(f64[3,7], f64[3,7])",
    "softmax:backward(f64[3,4,2], f64[3,4,2]; dim=1)",
    "log_softmax:backward(f64[3,7], f64[3,7])",
    "layer_norm:backward(f64[3,6], f64[6], f64[6], f64[3,6])",
    "layer_norm:backward(f64[2,3,4], f64[2,3,4]; normalized_rank=2 eps=0.1)",
    "rms_norm:backward(f64[3,6], f64[6], f64[3,6])",
    "cross_entropy:backward(f64[4,5], i64[4], f64[])",
    "cross_entropy:backward(f64[4,5], i64[4], f64[5], f64[4]; reduction=none)",
    "cross_entropy:backward(f64[4,5], i64[4], f64[5], f64[]; label_smoothing=0.2 ignore_index=2)",
    "cross_entropy:backward(f64[2,5,3], i64[2,3], f64[]; reduction=sum)",
    "cross_entropy:backward(f64[5], i64[], f64[])",
    "cross_entropy:backward(f64[4,5], f64[4,5], f64[5], f64[]; label_smoothing=0.3)",
    "nll_loss:backward(f64[4,5], i64[4], f64[5], f64[])",
    "nll_loss:backward(f64[2,5,3], i64[2,3], f64[2,3]; reduction=none)",
};
INSTANTIATE_TEST_SUITE_P(OfSmallProblems, Gradients, ::testing::ValuesIn(problems));

// Everywhere but at 0, where PyTorch's is 0, and at NaN, where the gradient passes.
TEST(Gradient, OfReluIsNothingAtZeroAndPassesNan) {
  const Values x = {-1, 0, -0.0, 2, std::numeric_limits<double>::quiet_NaN()};
  const Answer answer = solve(parse_problem("relu:backward(f64[5], f64[5])"), {x, {3, 4, 5, 6, 7}})[0];
  EXPECT_EQ(answer.value, (Values{0, 0, 0, 6, 7}));
}

struct Mistake {
  const char* right;
  const char* wrong;
};

TEST(Gradient, OfAnotherQuestionIsFound) {
  for (const auto& [text, wrong] : {
           Mistake{"conv2d:backward(bf16[1,3,8,8], bf16[4,3,3,3], bf16[1,4,8,8]; padding=1)",
                   "conv2d:backward(bf16[1,3,8,8], bf16[4,3,3,3], bf16[1,4,8,8]; padding=2 dilation=2)"},
           Mistake{"linear:backward(bf16[9,16], bf16[8,16], bf16[9,8]; activation=gelu)",
                   "linear:backward(bf16[9,16], bf16[8,16], bf16[9,8]; activation=silu)"},
           Mistake{"gelu:backward(f32[64], f32[64])", "gelu:backward(f32[64], f32[64]; approximate=tanh)"},
           Mistake{"silu:backward(bf16[64], bf16[64])", "sigmoid:backward(bf16[64], bf16[64])"},
           Mistake{"softmax:backward(bf16[6,6], bf16[6,6])", "softmax:backward(bf16[6,6], bf16[6,6]; dim=0)"},
           Mistake{"softmax:backward(f32[6,6], f32[6,6])", "log_softmax:backward(f32[6,6], f32[6,6])"},
           Mistake{"layer_norm:backward(f32[4,32], f32[4,32]; eps=0.001)", "layer_norm:backward(f32[4,32], f32[4,32])"},
           Mistake{"cross_entropy:backward(f32[20,9], i64[20], f32[])",
                   "cross_entropy:backward(f32[20,9], i64[20], f32[]; label_smoothing=0.01)"},
           Mistake{"cross_entropy:backward(bf16[20,9], i64[20], bf16[])",
                   "cross_entropy:backward(bf16[20,9], i64[20], bf16[]; reduction=sum)"},
       }) {
    const Case run(parse_problem(text), 5);
    const std::vector<Answer> answers = solve(parse_problem(wrong), run.inputs());
    Result result{"made up", {}};
    for (const Answer& answer : answers) result.values.push_back(answer.value);
    EXPECT_NE(run.compare(result), "") << wrong << " was taken for " << text;
  }
}

}  // namespace
}  // namespace xpuruntime::oracle
