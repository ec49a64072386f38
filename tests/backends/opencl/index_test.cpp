#include "backends/opencl/index.h"

#include <gtest/gtest.h>

#include <random>

namespace xpuruntime::opencl {
namespace {

/// What the kernels do: from a running number to the element of tensor `t`.
std::int64_t element(const RankedIndex& ranked, std::size_t t, std::int64_t number) {
  std::int64_t at = 0;
  for (int d = ranked.rank - 1; d > 0; --d) {
    at += number % ranked.index.extent[d] * ranked.index.stride[t][d];
    number /= ranked.index.extent[d];
  }
  return at + number * ranked.index.stride[t][0];
}

TEST(MakeIndex, MergesWhatAllTensorsWalkThroughInOneStride) {
  const Dims shape = {2, 3, 4};
  const Dims rows = {12, 4, 1};
  EXPECT_EQ(make_index(shape, rows, rows, rows).rank, 1);
  EXPECT_EQ(make_index(shape, rows, {0, 4, 1}, rows).rank, 2);
  EXPECT_EQ(make_index(shape, rows, {1, 8, 2}, rows).rank, 2);
  EXPECT_EQ(make_index(shape, rows, {0, 1, 0}, rows).rank, 3);
}

TEST(MakeIndex, LeavesOutExtentsOfOne) {
  const RankedIndex ranked = make_index({1, 5, 1}, {9, 2, 9}, {9, 3, 9}, {9, 4, 9});
  EXPECT_EQ(ranked.rank, 1);
  EXPECT_EQ(ranked.index.count, 5);
  EXPECT_EQ(ranked.index.extent[0], 5);
  EXPECT_EQ(ranked.index.stride[0][0], 2);
  EXPECT_EQ(ranked.index.stride[2][0], 4);
}

TEST(MakeIndex, HasOneElementForNoExtentsAndNoneForAnEmptyOne) {
  EXPECT_EQ(make_index({}, {}, {}, {}).index.count, 1);
  EXPECT_EQ(make_index({}, {}, {}, {}).rank, 1);
  EXPECT_EQ(make_index({3, 0}, {0, 1}, {0, 1}, {0, 1}).index.count, 0);
}

TEST(MakeIndex, FindsTheSameElementsAsNestedLoops) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::int64_t strides[] = {0, 1, 2, 3, 6, 12};
  for (int round = 0; round < 500; ++round) {
    Dims shape = Dims::filled(4, 1);
    Dims stride[3] = {shape, shape, shape};
    for (std::size_t d = 0; d < 4; ++d) {
      shape[d] = 1 + static_cast<std::int64_t>(random() % 3);
      for (Dims& of_tensor : stride) of_tensor[d] = strides[random() % 6];
    }
    const RankedIndex ranked = make_index(shape, stride[0], stride[1], stride[2]);
    std::int64_t number = 0;
    for (std::int64_t i = 0; i < shape[0]; ++i)
      for (std::int64_t j = 0; j < shape[1]; ++j)
        for (std::int64_t k = 0; k < shape[2]; ++k)
          for (std::int64_t l = 0; l < shape[3]; ++l, ++number)
            for (std::size_t t = 0; t < 3; ++t)
              ASSERT_EQ(element(ranked, t, number),
                        i * stride[t][0] + j * stride[t][1] + k * stride[t][2] + l * stride[t][3]);
    ASSERT_EQ(ranked.index.count, number);
  }
}

TEST(MakeRows, TakesWhatIsNeighboursInTheOutputForTheRow) {
  const Rows rows = make_rows({4, 6}, {6, 1}, {0, 0}, {1, 4});
  EXPECT_EQ(rows.length, 4);
  EXPECT_EQ(rows.step[0], 6);
  EXPECT_EQ(rows.step[2], 1);
  EXPECT_EQ(rows.index.count, 6);
  EXPECT_EQ(rows.index.stride[0][0], 1);
  EXPECT_EQ(rows.index.stride[2][0], 4);
  EXPECT_EQ(make_rows({4, 6}, {6, 1}, {0, 0}, {1, 4}, Order::row_major).length, 6);
}

TEST(MakeRows, IsOneRowWhereAllAreContiguousAndNoneWhereThereAreNoElements) {
  const Rows rows = make_rows({2, 3, 4}, {12, 4, 1}, {12, 4, 1}, {12, 4, 1});
  EXPECT_EQ(rows.length, 24);
  EXPECT_EQ(rows.index.count, 1);
  EXPECT_EQ(rows.index.rank, 1);
  EXPECT_EQ(make_rows({}, {}, {}, {}).length, 1);
  EXPECT_EQ(make_rows({3, 0}, {0, 1}, {0, 1}, {0, 1}).index.count, 0);
}

TEST(BroadcastStrides, AreZeroWhereATensorIsRepeated) {
  EXPECT_EQ(broadcast_strides({5, 2, 3}, {2, 3}, {3, 1}), Dims({0, 3, 1}));
  EXPECT_EQ(broadcast_strides({5, 2, 3}, {5, 1, 3}, {3, 3, 1}), Dims({3, 0, 1}));
  EXPECT_EQ(broadcast_strides({5}, {}, {}), Dims({0}));
}

}  // namespace
}  // namespace xpuruntime::opencl
