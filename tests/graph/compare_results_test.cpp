#include "graph/session/compare_results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/elements.h"
#include "xpuruntime/runtime/runtime.h"

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

TEST(CompareResults, WhereAllCancelsOutTheInputsSayWhatIsSmall) {
  const Tensor zero = tensor_of(DataType::float32, {0, 0}), rounded = tensor_of(DataType::float32, {1e-8, 0});
  EXPECT_NEAR(difference_of({&zero, 1}, {&rounded, 1}, 1e-3), 1e-5, 1e-9);
}

std::optional<ResultBounds> bounds_of(const Model& model, DataType precision = DataType::float32, double input = 0.5) {
  const Tensor x = tensor_of(DataType::float32, {input, -input});
  return result_bounds(model, precision, {&x, 1}, Runtime::global().devices());
}

TEST(CompareResults, ModelsOfCodesAndShortFloatsMayDifferMore) {
  Model model;
  model.graph.constants.emplace("w", tensor_of(DataType::float32, {1}));
  model.graph.constants.emplace("shape", tensor_of(DataType::int64, {1}));
  EXPECT_EQ(bounds_of(model)->most_difference, 0.01);
  EXPECT_EQ(bounds_of(model)->least_magnitude, 1e-3);
  EXPECT_EQ(bounds_of(model, DataType::float32, 200)->least_magnitude, 0.2);
  EXPECT_EQ(bounds_of(model, DataType::bfloat16)->most_difference, 0.1);
  const auto coarse = [&](const std::function<void(ModelGraph&)>& change) {
    Model changed = model;
    change(changed.graph);
    Model outer;  // also in a branch
    outer.graph.nodes.push_back(
        {.op = "If", .attributes = {{"then_branch", std::make_shared<const ModelGraph>(changed.graph)}}});
    return bounds_of(changed)->most_difference == 0.1 && bounds_of(outer)->most_difference == 0.1;
  };
  for (const DataType dtype : {DataType::int8, DataType::float16}) {
    EXPECT_TRUE(coarse([&](ModelGraph& graph) { graph.constants.emplace("codes", tensor_of(dtype, {1})); }));
    EXPECT_TRUE(coarse([&](ModelGraph& graph) { graph.inputs.push_back({.name = "x", .dtype = dtype}); }));
    EXPECT_TRUE(coarse([&](ModelGraph& graph) { graph.values["v"] = {.name = "v", .dtype = dtype}; }));
  }
  EXPECT_TRUE(coarse([](ModelGraph& graph) { graph.nodes.push_back({.op = "QuantizeLinear"}); }));
  EXPECT_TRUE(coarse([](ModelGraph& graph) {
    graph.nodes.push_back({.op = "Cast", .attributes = {{"to", std::int64_t{10}}}});
  }));
}

TEST(CompareResults, ModelsThatDrawRandomNumbersAreNotCompared) {
  Model model;
  model.graph.nodes.push_back({.op = "RandomNormalLike"});
  EXPECT_FALSE(bounds_of(model).has_value());
  model.graph.nodes = {{.op = "Dropout", .inputs = {"x"}}};
  EXPECT_TRUE(bounds_of(model).has_value());
  model.graph.nodes = {{.op = "Dropout", .inputs = {"x", "ratio", "training_mode"}}};
  EXPECT_FALSE(bounds_of(model).has_value());
}

}  // namespace
}  // namespace xpuruntime
