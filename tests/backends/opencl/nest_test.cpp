#include "backends/opencl/nest.h"

#include <gtest/gtest.h>

namespace xpuruntime::opencl {
namespace {

TEST(MakeNest, MergesWhatAllTensorsWalkThroughInOneStride) {
  const Dims shape = {2, 3, 4}, rows = {12, 4, 1};
  EXPECT_EQ(make_nest(shape, {rows}).rank, 1);
  EXPECT_EQ(make_nest(shape, {rows, {}, rows}).rank, 1);
  EXPECT_EQ(make_nest(shape, {rows, {0, 1, 0}}).rank, 3);
  EXPECT_EQ(make_nest(shape, {rows, {}, {}, {}, {0, 4, 1}}).rank, 2);
  EXPECT_EQ(make_nest({1, 5, 1}, {Dims{9, 2, 9}}).last_stride(0), 2);
}

TEST(MakeNest, HasOneElementForNoExtentsAndNoneForAnEmptyOne) {
  EXPECT_EQ(make_nest({}, {}).count, 1);
  EXPECT_EQ(make_nest({}, {}).last_extent(), 1);
  EXPECT_EQ(make_nest({3, 0}, {Dims{0, 1}}).count, 0);
}

TEST(SplitNest, Parts) {
  const SplitNest nest = split_nest({2, 3, 4}, dim_bit(-2, 3), {Dims{12, 4, 1}, {}, Dims{1, 2, 6}});
  EXPECT_EQ(nest.along.count, 3);
  EXPECT_EQ(nest.along.last_stride(0), 4);
  EXPECT_EQ(nest.along.last_stride(2), 2);
  EXPECT_EQ(nest.across.rank, 2);
  EXPECT_EQ(nest.across.count, 8);
  EXPECT_EQ(nest.across.last_stride(2), 6);
}

}  // namespace
}  // namespace xpuruntime::opencl
