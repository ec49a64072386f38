#include <gtest/gtest.h>

#include "core/forward_call.h"
#include "core/infer_calls.h"

namespace xpuruntime {
namespace {

DataType promoted(std::vector<DataType> dtypes) {
  std::vector<TensorSpec> specs;
  for (const DataType dtype : dtypes) specs.push_back(make_spec(dtype, {}));
  return promote(specs);
}

TEST(Infer, PromotesFloatsWithoutLoss) {
  EXPECT_EQ(promoted({DataType::float16, DataType::bfloat16}), DataType::float32);
  EXPECT_EQ(promoted({DataType::float32, DataType::float16}), DataType::float32);
  EXPECT_EQ(promoted({DataType::float64, DataType::bfloat16}), DataType::float64);
  EXPECT_EQ(promoted({DataType::tfloat32, DataType::float32}), DataType::float32);
  EXPECT_EQ(promoted({DataType::tfloat32, DataType::float16}), DataType::tfloat32);
  EXPECT_EQ(promoted({DataType::float8_e4m3, DataType::float8_e5m2}), DataType::float16);
  EXPECT_EQ(promoted({DataType::float8_e4m3, DataType::bfloat16}), DataType::bfloat16);
  EXPECT_EQ(promoted({DataType::bfloat16}), DataType::bfloat16);
}

TEST(Infer, PromotesIntegersAmongThemselvesAndNotBesideFloats) {
  EXPECT_EQ(promoted({DataType::int8, DataType::uint8}), DataType::int16);
  EXPECT_EQ(promoted({DataType::int32, DataType::int64}), DataType::int64);
  EXPECT_EQ(promoted({DataType::uint8, DataType::int16}), DataType::int16);
  EXPECT_EQ(promoted({DataType::boolean}), DataType::boolean);
  EXPECT_EQ(promoted({DataType::int64, DataType::float16}), DataType::float16);
  EXPECT_EQ(promoted({DataType::float8_e5m2, DataType::int32}), DataType::float8_e5m2);
}

TEST(Infer, PromotesAlikeInEveryOrder) {
  std::vector<DataType> all;
  for (int i = 0; i < data_type_count; ++i) all.push_back(static_cast<DataType>(i));
  for (const DataType a : all) {
    for (const DataType b : all) {
      for (const DataType c : all) {
        const DataType result = promoted({a, b, c});
        EXPECT_EQ(promoted({c, a, b}), result);
        EXPECT_EQ(promoted({b, a, c}), result);
      }
    }
  }
}

TEST(Infer, BroadcastsElementwiseOps) {
  EXPECT_EQ(outputs_of("add(f32[2,3], f32[3])"), "f32[2,3]");
  EXPECT_EQ(outputs_of("mul(f16[2,1,4], bf16[3,1])"), "f32[2,3,4]");
  EXPECT_EQ(outputs_of("sub(i8[4], i32[])"), "i32[4]");
  EXPECT_EQ(outputs_of("add(f32[], f32[])"), "f32[]");
  EXPECT_EQ(outputs_of("add(f32[0,3], f32[1,3])"), "f32[0,3]");
  EXPECT_EQ(outputs_of("div(i32[2], f16[2])"), "f16[2]");
}

TEST(Infer, RefusesElementwiseOpsThatMeanNothing) {
  expect_refused("add(f32[2,3], f32[4,3])", "[2,3] and [4,3] do not broadcast");
  expect_refused("add(f32[0], f32[3])", "do not broadcast");
  expect_refused("add(bool[2], f32[2])", "input 0, bool[2], is boolean");
  expect_refused("add(f32[2], bool[2])", "input 1, bool[2], is boolean");
  expect_refused("div(i32[2], i32[2])", "cast one of them to f32");
  expect_refused("add(f32[2])", "got 1 input; give 2");
  expect_refused("add(f32[2], f32[2], f32[2])", "got 3 inputs; give 2");
  expect_refused("relu()", "got 0 inputs; give 1");
}

TEST(Infer, ShowsBothShapesAndTheOpInARefusal) {
  expect_refused("add(f32[2,3], bf16[4,3])", "add(f32[2,3], bf16[4,3])");
}

TEST(Infer, RefusesResultsThatNoMemoryHolds) {
  expect_refused("add(f32[2147483648,1], f32[1,4294967296])", "63 bits");
  expect_refused("mul(f64[1099511627776,1,1], f64[1048576,1])", "63 bits");
}

TEST(Infer, KeepsShapeAndTypeThroughActivations) {
  EXPECT_EQ(outputs_of("relu(i32[2,3])"), "i32[2,3]");
  EXPECT_EQ(outputs_of("relu(f16[0])"), "f16[0]");
  EXPECT_EQ(outputs_of("gelu(bf16[2]; approximate=tanh)"), "bf16[2]");
  EXPECT_EQ(outputs_of("tanh(f64[])"), "f64[]");
  EXPECT_EQ(outputs_of("dropout(f16[3]; p=1)"), "f16[3]");
  EXPECT_EQ(outputs_of("dropout(f16[3], i64[2])"), "f16[3]");
  EXPECT_EQ(outputs_of("silu(f32[4,8]{1,4})"), "f32[4,8]{1,4}");
}

TEST(Infer, RefusesFunctionsOfTheWrongNumbers) {
  for (const char* op : {"gelu", "silu", "sigmoid", "tanh", "log", "exp", "sqrt", "softmax", "dropout"}) {
    expect_refused(std::string(op) + "(i32[2])", "is not floating");
  }
  expect_refused("relu(bool[2])", "boolean");
  expect_refused("dropout(f32[2]; p=1.5)", "probability");
  expect_refused("dropout(f32[2]; p=-0.5)", "probability");
  expect_refused("dropout(f32[2], i64[3])", "seed and offset");
  expect_refused("dropout(f32[2], i32[2])", "i64");
}

TEST(Infer, UnscalesToSingleOrDoubleAndSaysWhetherAllWasFinite) {
  EXPECT_EQ(outputs_of("unscale(f16[3,4], f32[1])"), "f32[3,4], f32[1]");
  EXPECT_EQ(outputs_of("unscale(bf16[4,8]{1,4}, f32[])"), "f32[4,8]{1,4}, f32[1]");
  EXPECT_EQ(outputs_of("unscale(f32[0], f32[1])"), "f32[0], f32[1]");
  EXPECT_EQ(outputs_of("unscale(f64[], f32[1])"), "f64[], f32[1]");
  EXPECT_EQ(outputs_of("unscale(f8e5m2[7], f64[1])"), "f32[7], f32[1]");
  expect_refused("unscale(i32[3], f32[1])", "is not floating");
  expect_refused("unscale(f16[3], f16[1])", "the inverse scale is not f32");
  expect_refused("unscale(f16[3], f32[2])", "inverse scale is [2]");
  expect_refused("unscale(f16[3], f32[1,1])", "inverse scale is [1,1]");
  expect_refused("unscale(f16[3])", "give 2");
  expect_error(ErrorCode::not_supported, "forward only",
               [] { parse_problem("unscale:backward(f16[3], f32[1], f32[3])"); });
}

}  // namespace
}  // namespace xpuruntime
