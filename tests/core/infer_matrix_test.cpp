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
  expect_refused("matmul(f32[3], f32[3,4]; transpose_a=true)", "transpose_a does not apply to a vector");
  expect_refused("matmul(f32[2,3], f32[3]; transpose_b=true)", "transpose_b does not apply to a vector");
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

TEST(InferMatrix, AddsWhatBroadcastsToTheProduct) {
  EXPECT_EQ(outputs_of("matmul(f32[2,3], f32[3,4], f32[2,4]; alpha=0.5 beta=0)"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(f16[5,2,3], f16[3,4], f16[5,1,4])"), "f16[5,2,4]");
  EXPECT_EQ(outputs_of("matmul(bf16[2,3], bf16[3,4], f32[4])"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(i8[2,3], i8[3,4], i8[4]; alpha=-2)"), "i32[2,4]");
  EXPECT_EQ(outputs_of("matmul(f32[3], f32[3], f32[])"), "f32[]");
  expect_refused("matmul(f32[2,3], f32[3,4], f32[5])", "do not broadcast");
  expect_refused("matmul(f32[2,3], f32[3,4], f32[7,2,4])", "c is [7,2,4]; make it broadcast to the result [2,4]");
  expect_refused("matmul(f32[2,3], f32[3,4], bool[4])", "boolean");
  expect_refused("matmul(f32[2,3], f32[3,4]; beta=2)", "beta is given without c");
  expect_refused("matmul(i8[2,3], i8[3,4]; alpha=0.5)",
                 "alpha is not a whole number up to 2^53 and the result is integer");
  expect_refused("matmul(i8[2,3], i8[3,4], i32[4]; beta=1e300)", "beta is not a whole number");
}

TEST(InferMatrix, ScalesWholeMatricesOrRowsAndColumns) {
  EXPECT_EQ(outputs_of("matmul(f8e4m3[2,3], f8e5m2[3,4], none, f32[1], f32[1])"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(i8[2,3], i8[3,4], none, f32[2], f32[4]; alpha=0.5)"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(i8[2,3], i8[3,4], bf16[4], none, f32[4])"), "f32[2,4]");
  EXPECT_EQ(outputs_of("matmul(bf16[2,3], bf16[3,4], none, f32[1])"), "bf16[2,4]");
  for (const char* c : {"f16[4]", "bf16[4]", "f32[4]"}) {
    EXPECT_EQ(outputs_of("matmul(i8[2,3], i8[3,4], " + std::string(c) + ")"), "f32[2,4]");
  }
  EXPECT_EQ(outputs_of("matmul(i8[2,3], i8[3,4], f64[4])"), "f64[2,4]");
  expect_refused("matmul(i8[2,3], i8[3,4], none, f32[4])", "scale_a is f32[4]; make it f32[], f32[1] or f32[2]");
  expect_refused("matmul(i8[2,3], i8[3,4], none, f32[1], f32[2])",
                 "scale_b is f32[2]; make it f32[], f32[1] or f32[4]");
  expect_refused("matmul(i8[2,3], i8[3,4], none, f16[1])", "scale_a is f16[1]");
  expect_refused("matmul(i8[2,3], i8[3,4], none, f32[1,1])", "scale_a is f32[1,1]");
  EXPECT_EQ(outputs_of("matmul(i8[2,3], i8[3,4], none, f32[], f32[])"), "f32[2,4]");
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

TEST(InferMatrix, AttendsToSequencesOfTheirOwnLength) {
  const std::string call = "attention(f16[2,8,5,64], f16[2,8,9,64], f16[2,8,9,32]";
  EXPECT_EQ(outputs_of(call + ", none, i32[2])"), "f16[2,8,5,32]");
  EXPECT_EQ(outputs_of(call + ", bool[9], i64[2]; lse=true)"), "f16[2,8,5,32], f32[2,8,5]");
  EXPECT_EQ(outputs_of(call + "; causal=true causal_align=bottom_right)"), "f16[2,8,5,32]");
  expect_refused(call + ", none, i32[3])", "the list of lengths is [3]; make it [2]");
  expect_refused(call + ", none, f32[2])", "cast it to i64 or i32");
  expect_refused(call + "; causal_align=bottom_right)", "causal_align is given without causal");
  expect_error(ErrorCode::not_supported, "no single output", [] {
    parse_problem("attention:backward(f16[1,1,5,4], f16[1,1,9,4], f16[1,1,9,4], f16[1,1,5,4]; lse=true)");
  });
}

TEST(InferMatrix, AttendsToKeysOnPages) {
  const std::string call = "attention(f16[2,8,1,64], f16[30,16,2,64], f16[30,16,2,32], ";
  EXPECT_EQ(outputs_of(call + "none, i32[2], i32[2,7])"), "f16[2,8,1,32]");
  EXPECT_EQ(outputs_of(call + "bool[112], none, i32[2,7])"), "f16[2,8,1,32]");
  expect_refused(call + "bool[30], none, i32[2,7])", "do not broadcast");
  expect_refused(call + "none, none, i64[2,7])", "the page table is i64[2,7]; make it i32[2,");
  expect_refused(call + "none, none, i32[3,7])", "the page table is i32[3,7]");
  expect_refused(call + "none, none, i32[2,0])", "the page table is i32[2,0]");
  expect_refused("attention(f16[2,8,1,64], f16[30,16,3,64], f16[30,16,3,64], none, none, i32[2,7])",
                 "not a multiple of the 3");
  expect_refused("attention(f16[2,8,1,64], f16[30,16,2,64], f16[31,16,2,64], none, none, i32[2,7])", "differ in pages");
}

TEST(InferMatrix, RefusesAttentionThatDoesNotFit) {
  expect_refused("attention(f16[2,8,5,64], f16[2,3,9,64], f16[2,3,9,64])", "8 query heads are not a multiple of the 3");
  expect_refused("attention(f16[2,8,5,64], f16[2,0,9,64], f16[2,0,9,64])", "not a multiple of the 0");
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
