#include "graph/session/compare_results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/elements.h"

namespace xpuruntime {
namespace {

Tensor tensor_of(DataType dtype, const std::vector<double>& values) {
  Tensor tensor = Tensor::empty(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    storer_of(dtype)(tensor.data(), static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

double difference(DataType dtype, const std::vector<double>& expected, const std::vector<double>& found) {
  const Tensor a = tensor_of(dtype, expected), b = tensor_of(dtype, found);
  return difference_of({&a, 1}, {&b, 1});
}

TEST(CompareResults, FloatsCountByTheLargestMagnitude) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(difference(DataType::float32, {1, -8, NAN, inf}, {1, -8, NAN, inf}), 0);
  EXPECT_EQ(difference(DataType::float32, {1, -8, 4}, {1, -8, 6}), 0.25);
  EXPECT_EQ(difference(DataType::bfloat16, {1, -8, inf}, {3, -8, inf}), 0.25);
  EXPECT_EQ(difference(DataType::float64, {0, 0}, {0, 0}), 0);
  EXPECT_GT(difference(DataType::float64, {0, 0}, {0, 1e-30}), 1) << "nothing is right where 0 is";
  EXPECT_TRUE(std::isinf(difference(DataType::float32, {1, 2}, {1, NAN})));
  EXPECT_TRUE(std::isinf(difference(DataType::float32, {1, inf}, {1, 2})));
  EXPECT_EQ(difference(DataType::float32, {}, {}), 0);
}

TEST(CompareResults, OfOthersTheShareThatDiffersCounts) {
  EXPECT_EQ(difference(DataType::int64, {1, 2, 3, 4}, {1, 2, 3, 400}), 0.25);
  EXPECT_EQ(difference(DataType::boolean, {1, 0}, {1, 0}), 0);
  EXPECT_EQ(difference(DataType::uint8, {1}, {2}), 1);
}

TEST(CompareResults, ViewsAreReadByTheirStrides) {
  const Tensor whole = tensor_of(DataType::float32, {1, 2, 3, 4, 5, 6});
  const Tensor turned = tensor_of(DataType::float32, {1, 4, 2, 5, 3, 6});
  const Tensor rows(whole.data(), make_spec(DataType::float32, {3, 2}, {1, 3}), {}, 0, whole.owner());
  const Tensor plain(turned.data(), make_spec(DataType::float32, {3, 2}), {}, 0, turned.owner());
  EXPECT_EQ(difference_of({&plain, 1}, {&rows, 1}), 0);
}

TEST(CompareResults, OtherShapesDtypesAndCountsAreNoRounding) {
  const Tensor three = tensor_of(DataType::float32, {1, 2, 3}), two = tensor_of(DataType::float32, {1, 2}),
               doubles = tensor_of(DataType::float64, {1, 2, 3});
  EXPECT_TRUE(std::isinf(difference_of({&three, 1}, {&two, 1})));
  EXPECT_TRUE(std::isinf(difference_of({&three, 1}, {&doubles, 1})));
  EXPECT_TRUE(std::isinf(difference_of({&three, 1}, {})));
}

TEST(CompareResults, ModelsOfCodesAndShortFloatsMayDifferMore) {
  Model model;
  model.graph.constants.emplace("w", tensor_of(DataType::float32, {1}));
  model.graph.constants.emplace("shape", tensor_of(DataType::int64, {1}));
  EXPECT_EQ(most_difference(model, DataType::float32), 0.01);
  EXPECT_EQ(most_difference(model, DataType::bfloat16), 0.1);
  for (const DataType dtype : {DataType::int8, DataType::float16}) {
    Model coarse = model;
    coarse.graph.constants.emplace("codes", tensor_of(dtype, {1}));
    EXPECT_EQ(most_difference(coarse, DataType::float32), 0.1);
  }
}

}  // namespace
}  // namespace xpuruntime
