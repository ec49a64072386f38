#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/forced_call.h"

namespace xpuruntime::cpu_tests {
namespace {

// Scores far from 0: their exponentials alone would overflow, and log-sum-exp less a score would lose its digits.
std::vector<float> high_scores(std::size_t count) {
  std::vector<float> scores(count);
  for (std::size_t i = 0; i < count; ++i) scores[i] = 5000 + static_cast<float>(i * 37 % 101) / 32;
  return scores;
}

double expected_loss(const std::vector<float>& scores, std::size_t first, std::size_t classes, std::size_t step,
                     std::size_t target) {
  double sum = 0;
  for (std::size_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(scores[first + c * step]) - 5000);
  return std::log(sum) - (static_cast<double>(scores[first + target * step]) - 5000);
}

TEST(CrossEntropySimd, TakesRowsLongerThanAChunk) {
  const std::int64_t classes = 10007;
  const std::vector<float> scores = high_scores(2 * 10007);
  const Tensor targets = tensor_of({2}, std::vector<std::int64_t>{0, 10006});
  const Attributes attributes = Attributes(OpId::cross_entropy).set_choice("reduction", "none");
  const auto losses = forced_call("simd", attributes, {tensor_of({2, classes}, scores), targets})[0];
  EXPECT_NEAR(losses[0], expected_loss(scores, 0, 10007, 1, 0), 1e-5);
  EXPECT_NEAR(losses[1], expected_loss(scores, 10007, 10007, 1, 10006), 1e-5);
}

TEST(CrossEntropySimd, TakesPositionsThatLieBesideEachOther) {
  const std::vector<float> scores = high_scores(2 * 6 * 19);
  std::vector<std::int64_t> targets(38);
  for (std::size_t i = 0; i < 38; ++i) targets[i] = i % 5 == 4 ? -100 : static_cast<std::int64_t>(i % 6);
  const Attributes attributes = Attributes(OpId::cross_entropy).set_choice("reduction", "none");
  const auto losses = forced_call("simd", attributes, {tensor_of({2, 6, 19}, scores), tensor_of({2, 19}, targets)})[0];
  for (std::size_t i = 0; i < 38; ++i) {
    const std::size_t first = i / 19 * 6 * 19 + i % 19;
    const double loss = targets[i] < 0 ? 0 : expected_loss(scores, first, 6, 19, static_cast<std::size_t>(targets[i]));
    EXPECT_NEAR(losses[i], loss, 1e-5) << i;
  }
}

// Each class's probability is the same: the loss is log-sum-exp less the mean score.
double expected_spread(const std::vector<float>& scores, std::size_t first, std::size_t classes, std::size_t step) {
  double mean = 0;
  for (std::size_t c = 0; c < classes; ++c) mean += (static_cast<double>(scores[first + c * step]) - 5000);
  return expected_loss(scores, first, classes, step, 0) + (static_cast<double>(scores[first]) - 5000) -
         mean / static_cast<double>(classes);
}

TEST(CrossEntropySimd, KeepsItsDigitsWithSmoothingAndProbabilitiesOfHighScores) {
  const Attributes none = Attributes(OpId::cross_entropy).set_choice("reduction", "none");
  const Attributes smooth = Attributes(none).set_real("label_smoothing", 1);
  const std::vector<float> row = high_scores(10007), columns = high_scores(6 * 19);
  const Tensor long_row = tensor_of({1, 10007}, row), beside = tensor_of({1, 6, 19}, columns);
  const auto spread = forced_call("simd", smooth, {long_row, tensor_of({1}, std::vector<std::int64_t>{3})})[0];
  EXPECT_NEAR(spread[0], expected_spread(row, 0, 10007, 1), 1e-4);
  const auto equal =
      forced_call("simd", none, {beside, tensor_of({1, 6, 19}, std::vector<float>(6 * 19, 1 / 6.0f))})[0];
  const auto smoothed = forced_call("simd", smooth, {beside, tensor_of({1, 19}, std::vector<std::int64_t>(19, 2))})[0];
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_NEAR(equal[i], expected_spread(columns, i, 6, 19), 1e-5) << i;
    EXPECT_NEAR(smoothed[i], expected_spread(columns, i, 6, 19), 1e-5) << i;
  }
}

TEST(ClassLosses, TheMeanOfNoTargetIsNotANumberAndTheirSumIsZero) {
  const Tensor scores = tensor_of({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const Tensor targets = tensor_of({3}, std::vector<std::int64_t>{-100, -100, -100});
  for (const OpId op : {OpId::cross_entropy, OpId::nll_loss}) {
    for (const char* kernel : {"simd", "reference"}) {
      EXPECT_TRUE(std::isnan(forced_call(kernel, Attributes(op), {scores, targets})[0][0])) << kernel;
      const Attributes sum = Attributes(op).set_choice("reduction", "sum");
      EXPECT_EQ(forced_call(kernel, sum, {scores, targets})[0][0], 0) << kernel;
    }
  }
}

TEST(ClassLosses, TheIgnoredTargetMayBeAClass) {
  const Tensor scores = tensor_of({2, 3}, std::vector<float>{-1, -2, -3, -4, -5, -6});
  const Tensor targets = tensor_of({2}, std::vector<std::int64_t>{1, 2});
  const Attributes attributes = Attributes(OpId::nll_loss).set("ignore_index", 1);
  for (const char* kernel : {"simd", "reference"}) {
    EXPECT_EQ(forced_call(kernel, attributes, {scores, targets})[0][0], 6) << kernel;
  }
}

TEST(KlDivSimd, ATargetOfZeroCostsNothing) {
  const Tensor x = tensor_of({3}, std::vector<float>{-1, -2, 0});
  const Tensor target = tensor_of({3}, std::vector<float>{0, 1, 0});
  const Attributes attributes = Attributes(OpId::kl_div).set_choice("reduction", "none");
  EXPECT_EQ(forced_call("simd", attributes, {x, target})[0], (std::vector<float>{0, 2, 0}));
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
