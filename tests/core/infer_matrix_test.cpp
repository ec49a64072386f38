#include <gtest/gtest.h>

#include "core/infer_calls.h"

namespace xpuruntime {
namespace {

TEST(InferMatrix, MultipliesMatricesAndVectorsAsNumPyDoes) {
  EXPECT_EQ(outputs_of("matmul(f32[2,3], f32[3,4])"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(f32[3], f32[3])"), "f32[]");
  EXPECT_EQ(outputs_of("matmul(f32[3], f32[3,4])"), "f32[4]");
  EXPECT_EQ(outputs_of("matmul(f32[2,3], f32[3])"), "f32[2]");
  EXPECT_EQ(outputs_of("matmul(f32[5,2,3], f32[3])"), "f32[5,2]");
  EXPECT_EQ(outputs_of("matmul(f32[3], f32[5,3,4])"), "f32[5,4]");
  EXPECT_EQ(outputs_of("matmul(f32[7,1,2,3], f32[5,3,4])"), "f32[7,5,2,4]");
  EXPECT_EQ(outputs_of("matmul(f32[2,0], f32[0,4])"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(f32[1,1,1,1,1,1,2,3], f32[3,4])"), "f32[1,1,1,1,1,1,2,4]");
}

TEST(InferMatrix, TransposesTheLastTwoDims) {
  EXPECT_EQ(outputs_of("matmul(f32[3,2], f32[3,4]; transpose_a=true)"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(f32[2,3], f32[6,4,3]; transpose_b=true)"), "f32[6,2,4]");
  EXPECT_EQ(outputs_of("matmul(f32[3,2], f32[4,3]; transpose_a=true transpose_b=true)"), "f32[2,4]");
  expect_refused("matmul(f32[3], f32[3,4]; transpose_a=true)", "transpose_a of a vector");
  expect_refused("matmul(f32[2,3], f32[3]; transpose_b=true)", "transpose_b of a vector");
}

TEST(InferMatrix, SumsProductsOfNarrowTypesInWideOnes) {
  EXPECT_EQ(outputs_of("matmul(i8[2,3], i8[3,4])"), "i32[2,4]");
  EXPECT_EQ(outputs_of("matmul(u8[2,3], i8[3,4])"), "i32[2,4]");
  EXPECT_EQ(outputs_of("matmul(i16[2,3], i8[3,4])"), "i16[2,4]");
  EXPECT_EQ(outputs_of("matmul(f8e4m3[2,3], f8e5m2[3,4])"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(f16[2,3], i8[3,4])"), "f16[2,4]");
  EXPECT_EQ(outputs_of("matmul(bf16[2,3], bf16[3,4])"), "bf16[2,4]");
  EXPECT_EQ(outputs_of("linear(i8[2,3], i8[4,3], i32[4])"), "i32[2,4]");
}

TEST(InferMatrix, RefusesOperandsThatDoNotFit) {
  expect_refused("matmul(f32[2,3], f32[4,5])", "the inner extents 3 and 4 differ");
  expect_refused("matmul(f32[2,3], f32[4,5])", "matmul(f32[2,3], f32[4,5])");
  expect_refused("matmul(f32[2,2,3], f32[3,3,4])", "do not broadcast");
  expect_refused("matmul(f32[], f32[2])", "without dims");
  expect_refused("matmul(f32[2,2], bool[2,2])", "boolean");
  expect_refused("matmul(i8[4611686018427387904,1], i8[1,4611686018427387904])", "63 bits");
}

TEST(InferMatrix, TakesLinearWeightsAsPyTorchDoes) {
  EXPECT_EQ(outputs_of("linear(f32[2,7,3], f32[4,3], f32[4])"), "f32[2,7,4]");
  EXPECT_EQ(outputs_of("linear(f32[3], f32[4,3]; activation=gelu)"), "f32[4]");
  expect_refused("linear(f32[2,3], f32[3,4])", "transpose the weight");
  expect_refused("linear(f32[], f32[4,3])", "transpose the weight");
  expect_refused("linear(f32[2,3], f32[4,3], f32[3])", "the bias is [3]; make it [4]");
  expect_refused("linear(f32[2,3], f32[3])", "has 1 dims, not 2");
  expect_refused("linear(i8[2,3], i8[4,3]; activation=gelu)", "gelu of integers");
}

TEST(InferMatrix, AttendsWithGroupedHeads) {
  EXPECT_EQ(outputs_of("attention(f16[2,8,5,64], f16[2,8,9,64], f16[2,8,9,32])"), "f16[2,8,5,32]");
  EXPECT_EQ(outputs_of("attention(f16[2,8,5,64], f16[2,2,9,64], f16[2,2,9,64]; causal=true)"), "f16[2,8,5,64]");
  EXPECT_EQ(outputs_of("attention(f16[2,8,5,64], bf16[2,1,9,64], f16[2,1,9,64])"), "f32[2,8,5,64]");
  EXPECT_EQ(outputs_of("attention(f16[2,8,0,64], f16[2,8,9,64], f16[2,8,9,64])"), "f16[2,8,0,64]");
}

TEST(InferMatrix, TakesMasksThatBroadcastToTheScores) {
  const std::string call = "attention(f16[2,8,5,64], f16[2,8,9,64], f16[2,8,9,64], ";
  EXPECT_EQ(outputs_of(call + "bool[5,9])"), "f16[2,8,5,64]");
  EXPECT_EQ(outputs_of(call + "f32[2,1,1,9])"), "f16[2,8,5,64]");
  EXPECT_EQ(outputs_of(call + "f16[])"), "f16[2,8,5,64]");
  expect_refused(call + "bool[9,5])", "do not broadcast");
  expect_refused(call + "bool[3,2,8,5,9])", "larger than the scores [2,8,5,9]");
  expect_refused(call + "i32[5,9])", "not floating");
}

TEST(InferMatrix, RefusesAttentionThatDoesNotFit) {
  expect_refused("attention(f16[2,8,5,64], f16[2,3,9,64], f16[2,3,9,64])", "8 query heads are no multiple of the 3");
  expect_refused("attention(f16[2,8,5,64], f16[2,0,9,64], f16[2,0,9,64])", "no multiple of the 0");
  expect_refused("attention(f16[2,8,5,64], f16[1,8,9,64], f16[2,8,9,64])", "batch");
  expect_refused("attention(f16[2,8,5,64], f16[2,8,9,32], f16[2,8,9,64])", "heads of different size");
  expect_refused("attention(f16[2,8,5,64], f16[2,8,9,64], f16[2,8,7,64])", "key and value differ");
  expect_refused("attention(f16[2,8,5,64], f16[2,8,0,64], f16[2,8,0,64])", "no keys");
  expect_refused("attention(f16[2,8,5,0], f16[2,8,9,0], f16[2,8,9,4])", "give a scale");
  expect_refused("attention(f16[8,5,64], f16[8,9,64], f16[8,9,64])", "has 3 dims, not 4");
  expect_refused("attention(i8[1,1,1,1], i8[1,1,1,1], i8[1,1,1,1])", "not floating");
}

}  // namespace
}  // namespace xpuruntime
