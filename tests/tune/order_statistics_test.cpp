#include "tune/order_statistics.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace xpuruntime {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(MedianOf, IsTheMiddleOrTheMeanOfTheTwoMiddles) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median_of({7}), 7);
}

// The places are those of the tables of the sign test.
TEST(MedianBounds, AreTheOrderStatisticsOfTheSignTest) {
  EXPECT_FALSE(median_bounds(one_to(5), 0.05));
  EXPECT_EQ(median_bounds(one_to(6), 0.05)->low, 1);
  EXPECT_EQ(median_bounds(one_to(6), 0.05)->high, 6);
  EXPECT_EQ(median_bounds(one_to(9), 0.05)->low, 2);
  EXPECT_EQ(median_bounds(one_to(20), 0.05)->low, 6);
  EXPECT_EQ(median_bounds(one_to(20), 0.05)->high, 15);
  EXPECT_EQ(median_bounds(one_to(20), 0.01)->low, 4);
  EXPECT_FALSE(median_bounds(one_to(7), 0.01));
  EXPECT_TRUE(median_bounds(one_to(8), 0.01));
  EXPECT_FALSE(median_bounds({}, 0.05));
}

TEST(MedianBounds, HoldTheMedianWhateverTheNoise) {
  std::mt19937_64 random(1);
  int missed = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 15; ++i) values.push_back(std::cauchy_distribution(10.0, 3.0)(random));
    const auto bounds = median_bounds(values, 0.05);
    missed += bounds->low > 10 || bounds->high < 10;
  }
  EXPECT_LE(missed, 2000 * 0.05);
}

}  // namespace
}  // namespace xpuruntime
