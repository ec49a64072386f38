// The oracle itself under test: values known beforehand, and mistakes that its bounds must catch.

#include "backends/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cases.h"

namespace xpuruntime::oracle {
namespace {

Values solved(const std::string& text, std::vector<Values> inputs, std::size_t output = 0) {
  return solve(parse_problem(text), inputs)[output].value;
}

void expect_near(const Values& got, const Values& expected, double within = 1e-12) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], within) << i;
}

/// The right result of a case, as a kernel with one rounding would give it.
Result right(const Case& run) {
  Result result{"made up", {}};
  for (std::size_t i = 0; i < run.answers().size(); ++i) {
    Values values;
    for (const double v : run.answers()[i].value) values.push_back(rounded(run.problem().outputs[i].dtype, v));
    result.values.push_back(values);
  }
  return result;
}

double largest(const Values& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::fabs(value));
  return most;
}

/// The answer to another problem on the same inputs.
Result answer_of(const Case& run, const std::string& text) {
  const std::vector<Answer> answers = solve(parse_problem(text), run.inputs());
  Result result{"made up", {}};
  for (const Answer& answer : answers) result.values.push_back(answer.value);
  return result;
}

TEST(Oracle, TakesTheRightAnswerAndFindsAWrongOne) {
  for (const char* text :
       {"add(f32[40], f32[40])", "matmul(f32[9,33], f32[33,5])", "softmax(bf16[4,17])",
        "layer_norm(f16[4,64], f16[64], f16[64])", "attention(f32[1,2,7,8], f32[1,2,7,8], f32[1,2,7,8])",
        "conv2d(f32[1,3,8,8], f32[4,3,3,3]; padding=1)", "cross_entropy(f32[7,9], i64[7]; reduction=none)",
        "embedding(i64[3], bf16[4,5])", "matmul(i8[3,4], i8[4,5])", "exp(f64[9])",
        "batch_norm1d(f32[9,4], f32[4], f32[4]; training=true)"}) {
    const Case run(parse_problem(text), 1);
    Result result = right(run);
    EXPECT_EQ(run.compare(result), "") << text;
    for (std::size_t output = 0; output < result.values.size(); ++output) {
      const DataType dtype = run.problem().outputs[output].dtype;
      double& value = result.values[output][result.values[output].size() / 2];
      const double kept = value;
      // Of the largest value: 16 units in 16 bits, and in more a hundredth of a percent.
      value += is_floating(dtype) ? largest(result.values[output]) * std::max(32 * half_unit(dtype), 1e-4) : 1;
      EXPECT_NE(run.compare(result), "") << text << " off";
      value = std::numeric_limits<double>::quiet_NaN();
      EXPECT_NE(run.compare(result), "") << text << " not written";
      value = kept;
    }
    result.strayed = true;
    EXPECT_NE(run.compare(result), "") << text << " between the elements";
  }
}

TEST(Oracle, FindsAValueThatWasNeverWritten) {
  const Case run(parse_problem("add(f32[4], f32[4])"), 1);
  Result result = right(run);
  result.values[0].pop_back();
  EXPECT_NE(run.compare(result), "");
  std::byte poison[8];
  std::fill(poison, poison + 8, output_poison);
  result = right(run);
  result.values[0][3] = decode(DataType::float32, poison);
  EXPECT_NE(run.compare(result), "");
}

TEST(Oracle, FindsTheAnswerToAnotherQuestion) {
  for (const auto& [text, wrong] : cases::checks().mistakes) {
    const Case run(parse_problem(text), 5);
    EXPECT_NE(run.compare(answer_of(run, wrong)), "") << wrong << " was taken for " << text;
  }
}

TEST(Oracle, FindsASumThatLostATermOrWasKeptInSixteenBits) {
  const Case run(parse_problem("matmul(bf16[4,65], bf16[65,6])"), 3);
  const Values& a = run.inputs()[0];
  const Values& b = run.inputs()[1];
  Result short_sum = right(run), coarse = right(run);
  double sum = 0;
  for (std::size_t p = 0; p < 65; ++p) {
    const double term = a[p] * b[p * 6];
    if (p < 64) short_sum.values[0][0] -= p == 63 ? term : 0;
    sum = rounded(DataType::bfloat16, sum + term);
  }
  coarse.values[0][0] = sum;
  EXPECT_NE(run.compare(short_sum), "");
  EXPECT_NE(run.compare(coarse), "");
}

TEST(Oracle, GivesWinogradMoreRoomAndNotEndlessRoom) {
  const Case run(parse_problem("conv2d(f32[1,16,8,8], f32[4,16,3,3]; padding=1)"), 3);
  Result result = right(run);
  result.values[0][9] += 1e-3;
  EXPECT_NE(run.compare(result), "");
  result.kernel = "winograd";
  EXPECT_EQ(run.compare(result), "");
  result.values[0][9] += 0.02;
  EXPECT_NE(run.compare(result), "");
}

TEST(Oracle, KnowsInfinitiesAndNaN) {
  const Case run(parse_problem("exp(f32[200])"), 3, Fill::special);
  Result result = right(run);
  EXPECT_EQ(run.compare(result), "");
  for (double& value : result.values[0]) {
    const double kept = value;
    if (std::isfinite(kept)) continue;
    value = std::isnan(kept) ? 0 : std::numeric_limits<float>::max();
    EXPECT_NE(run.compare(result), "");
    value = kept;
  }
}

// From the known-answer file of the authors' own implementation.
TEST(Oracle, PhiloxGivesThePublishedNumbers) {
  using Counter = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Worked out by hand or with PyTorch.
TEST(Oracle, AgreesWithValuesFromElsewhere) {
  expect_near(solved("conv2d(f32[1,1,3,3], f32[1,1,2,2])", {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 10, 100, 1000}}),
              {5421, 6532, 8754, 9865});
  expect_near(solved("max_pool2d(f32[1,1,3,3]; kernel_size=2 stride=2 ceil_mode=true)", {{1, 2, 3, 4, 5, 6, 7, 8, 9}}),
              {5, 6, 8, 9});
  expect_near(solved("avg_pool2d(f32[1,1,3,3]; kernel_size=2 stride=2 padding=1)", {{1, 2, 3, 4, 5, 6, 7, 8, 9}}),
              {0.25, 1.25, 2.75, 7});
  expect_near(solved("softmax(f32[3])", {{0, std::log(2.0), std::log(5.0)}}), {0.125, 0.25, 0.625});
  expect_near(solved("batch_norm1d(f32[2,1], f32[1], f32[1]; training=true eps=0)", {{1, 3}, {0}, {1}}), {-1, 1});
  expect_near(solved("batch_norm1d(f32[2,1], f32[1], f32[1]; training=true)", {{1, 3}, {0}, {1}}, 1), {0.2});
  expect_near(solved("batch_norm1d(f32[2,1], f32[1], f32[1]; training=true)", {{1, 3}, {0}, {1}}, 2), {1.1});
  expect_near(solved("normalize(f32[1,2]; p=2)", {{3, 4}}), {0.6, 0.8});
  expect_near(solved("nll_loss(f32[3,2], i64[3], f32[2])", {{-1, -2, -3, -4, -5, -6}, {1, -100, 0}, {2, 3}}),
              {16.0 / 5});
  expect_near(solved("gelu(f32[1])", {{1}}), {0.8413447460685429});
  expect_near(solved("gelu(f32[1]; approximate=tanh)", {{1}}), {0.8411919906082768});
  expect_near(solved("slice(f32[5]; start=-4 step=2)", {{0, 1, 2, 3, 4}}), {1, 3});
  expect_near(solved("transpose(f32[2,3])", {{0, 1, 2, 3, 4, 5}}), {0, 3, 1, 4, 2, 5});
  expect_near(solved("attention(f32[1,1,1,1], f32[1,1,2,1], f32[1,1,2,1], bool[2])", {{1}, {1, 5}, {7, 9}, {1, 0}}),
              {7});
  expect_near(solved("attention(f32[1,1,1,1], f32[1,1,2,1], f32[1,1,2,1], bool[2])", {{1}, {1, 5}, {7, 9}, {0, 0}}),
              {0});
}

}  // namespace
}  // namespace xpuruntime::oracle
