#include "xpuruntime/core/dims.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

constexpr std::int64_t huge = std::int64_t{1} << 40;

TEST(Dims, HoldsUpToEightNumbers) {
  const Dims dims{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(dims.size(), max_rank);
  EXPECT_EQ(dims.back(), 8);
  EXPECT_TRUE(Dims{}.empty());
}

TEST(Dims, RefusesANinth) {
  expect_invalid("rank 9 is over the limit of 8", [] { Dims{1, 2, 3, 4, 5, 6, 7, 8, 9}; });
  expect_invalid("rank 100", [] { Dims(std::vector<std::int64_t>(100, 1)); });
  expect_invalid("rank 9", [] { Dims::filled(9, 1); });
}

TEST(Dims, FillsWithOneValue) {
  EXPECT_EQ(Dims::filled(3, 7), (Dims{7, 7, 7}));
  EXPECT_EQ(Dims::filled(0, 7), Dims{});
  EXPECT_EQ(Dims::filled(8, -1).size(), 8u);
}

TEST(Dims, ComparesOnlyTheNumbersThatCount) {
  Dims a{1, 2, 3};
  EXPECT_NE(a, (Dims{1, 2}));
  EXPECT_NE((Dims{1, 0}), Dims{1});
  a[2] = 4;
  EXPECT_EQ(a, (Dims{1, 2, 4}));
}

TEST(Dims, PrintsInBrackets) {
  EXPECT_EQ(to_string(Dims{2, 3}), "[2,3]");
  EXPECT_EQ(to_string(Dims{}), "[]");
}

TEST(CheckedCount, MultipliesTheExtents) {
  EXPECT_EQ(checked_count({2, 3, 4}, 4), 24);
  EXPECT_EQ(checked_count({}, 8), 1);
  EXPECT_EQ(checked_count({5, 0, 7}, 8), 0);
}

TEST(CheckedCount, RefusesMoreBytesThanFit63Bits) {
  EXPECT_EQ(checked_count({std::int64_t{1} << 62}, 1), std::int64_t{1} << 62);
  expect_invalid("63 bits", [] { checked_count({std::int64_t{1} << 62}, 2); });
  expect_invalid("63 bits", [] { checked_count({huge, huge}, 1); });
  expect_invalid("63 bits", [] { checked_count({INT64_MAX, INT64_MAX, INT64_MAX}, 8); });
}

TEST(CheckedCount, RefusesHugeExtentsBesideAZeroToo) {
  expect_invalid("63 bits", [] { checked_count({huge, 0, huge}, 4); });
}

TEST(CheckedCount, RefusesNegativeExtents) {
  expect_invalid("[2,-1] has a negative extent", [] { checked_count({2, -1}, 4); });
  expect_invalid("negative", [] { checked_count({INT64_MIN}, 4); });
}

TEST(ContiguousStrides, AreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims{});
  EXPECT_EQ(contiguous_strides({7}), Dims{1});
}

TEST(ChannelsLastStrides, HaveTheSecondDimInnermost) {
  EXPECT_EQ(channels_last_strides({2, 3, 4, 5}), (Dims{60, 1, 15, 3}));
  EXPECT_EQ(channels_last_strides({2, 3}), (Dims{3, 1}));
  expect_invalid("no second dim", [] { channels_last_strides({7}); });
  expect_invalid("no second dim", [] { channels_last_strides({}); });
}

TEST(ContiguousStrides, CountAnEmptyExtentAsOne) { EXPECT_EQ(contiguous_strides({2, 0, 3}), (Dims{3, 3, 1})); }

TEST(ContiguousStrides, RefuseShapesThatOverflow) {
  expect_invalid("63 bits", [] { contiguous_strides({huge, huge, huge}); });
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast_shapes({2, 3}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast_shapes({2, 1}, {1, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast_shapes({4, 2, 3}, {3}), (Dims{4, 2, 3}));
  EXPECT_EQ(broadcast_shapes({}, {5}), Dims{5});
  EXPECT_EQ(broadcast_shapes({1}, {0}), Dims{0});
  EXPECT_EQ(broadcast_shapes({0, 1}, {1, 4}), (Dims{0, 4}));
}

TEST(Broadcast, ShowsBothShapesThatDoNotFit) {
  expect_invalid("[2,3] and [2,4]", [] { broadcast_shapes({2, 3}, {2, 4}); });
  expect_invalid("[0] and [2]", [] { broadcast_shapes({0}, {2}); });
}

}  // namespace
}  // namespace xpuruntime
