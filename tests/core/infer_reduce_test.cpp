#include <gtest/gtest.h>

#include "core/infer_calls.h"

namespace xpuruntime {
namespace {

TEST(InferReduce, DropsOrKeepsTheReducedDims) {
  EXPECT_EQ(outputs_of("reduce_sum(f32[2,3,4])"), "f32[]");
  EXPECT_EQ(outputs_of("reduce_sum(f32[2,3,4]; keepdim=true)"), "f32[1,1,1]");
  EXPECT_EQ(outputs_of("reduce_mean(f16[2,3,4]; dim=-1)"), "f16[2,3]");
  EXPECT_EQ(outputs_of("reduce_max(i8[2,3,4]; dim=0,2 keepdim=true)"), "i8[1,3,1]");
  EXPECT_EQ(outputs_of("reduce_min(f32[])"), "f32[]");
  EXPECT_EQ(outputs_of("reduce_sum(f32[2,3,4,5,6,7,8,9])"), "f32[]");
}

TEST(InferReduce, WidensSumsOfIntegers) {
  EXPECT_EQ(outputs_of("reduce_sum(i8[2,3])"), "i64[]");
  EXPECT_EQ(outputs_of("reduce_sum(f16[2,3])"), "f16[]");
}

TEST(InferReduce, DefinesReductionsOfNothingWhereTheyHaveAValue) {
  EXPECT_EQ(outputs_of("reduce_sum(f32[0,3]; dim=0)"), "f32[3]");
  EXPECT_EQ(outputs_of("reduce_max(f32[0,3]; dim=1)"), "f32[0]");
  expect_refused("reduce_max(f32[0,3]; dim=0)", "dim 0 has no elements");
  expect_refused("reduce_min(f32[3,0])", "dim 1 has no elements");
}

TEST(InferReduce, RefusesReductionsThatMeanNothing) {
  expect_refused("reduce_sum(f32[2,3]; dim=0,-2)", "reduced twice");
  expect_refused("reduce_sum(f32[2,3]; dim=2)", "dim 2 is out of range");
  expect_refused("reduce_sum(f32[]; dim=0)", "without dims");
  expect_refused("reduce_mean(i32[2])", "not floating");
  expect_refused("reduce_sum(bool[2])", "boolean");
}

TEST(InferReduce, ComparesScoresWithClasses) {
  EXPECT_EQ(outputs_of("cross_entropy(f32[8,10], i64[8])"), "f32[]");
  EXPECT_EQ(outputs_of("cross_entropy(f16[8,10], i32[8]; reduction=none)"), "f16[8]");
  EXPECT_EQ(outputs_of("cross_entropy(f32[8,10,5,6], i64[8,5,6], f32[10]; reduction=none)"), "f32[8,5,6]");
  EXPECT_EQ(outputs_of("cross_entropy(f32[8,10], f32[8,10]; label_smoothing=0.1 reduction=none)"), "f32[8]");
  EXPECT_EQ(outputs_of("nll_loss(f32[10], i64[]; reduction=none)"), "f32[]");
  EXPECT_EQ(outputs_of("nll_loss(f32[0,10], i64[0]; reduction=sum)"), "f32[]");
}

TEST(InferReduce, RefusesTargetsThatDoNotFit) {
  expect_refused("cross_entropy(f32[8,10], i64[7])", "the target is [7]; make it [8]");
  expect_refused("cross_entropy(f32[8,10], f32[8])", "the target of probabilities is [8]; make it [8,10]");
  expect_refused("cross_entropy(f32[8,10], i16[8])", "cast it to i64 or i32");
  expect_refused("cross_entropy(f32[], i64[])", "no class dim");
  expect_refused("cross_entropy(f32[8,10], i64[8], f32[8])", "the class weight is [8]; make it [10]");
  expect_refused("cross_entropy(f32[8,10], i64[8]; label_smoothing=2)", "0 to 1");
  expect_refused("nll_loss(f32[8,10], f32[8,10])", "cast it to i64 or i32");
  expect_refused("nll_loss(i32[8,10], i64[8])", "not floating");
}

TEST(InferReduce, ComparesElementByElement) {
  EXPECT_EQ(outputs_of("kl_div(f32[8,10], f16[8,10])"), "f32[]");
  EXPECT_EQ(outputs_of("kl_div(f32[8,10], f32[10]; reduction=none)"), "f32[8,10]");
  EXPECT_EQ(outputs_of("kl_div(f32[8,10], f32[8,10]; reduction=batchmean)"), "f32[]");
  EXPECT_EQ(outputs_of("poisson_nll_loss(f16[4], i64[4]; reduction=none full=true)"), "f16[4]");
  expect_refused("kl_div(f32[8], i64[8])", "not floating");
  expect_refused("kl_div(f32[8], f32[9])", "do not broadcast");
  expect_refused("kl_div(f32[], f32[]; reduction=batchmean)", "use mean");
  expect_refused("poisson_nll_loss(f32[4], bool[4])", "boolean");
  EXPECT_TRUE(Attributes(OpId::poisson_nll_loss).boolean("log_input"));
}

TEST(InferReduce, GivesTargetsNoGradient) {
  EXPECT_EQ(outputs_of("kl_div:backward(f32[8,10], f32[8,10], f32[])"), "f32[8,10]");
  EXPECT_EQ(outputs_of("poisson_nll_loss:backward(f32[8], bf16[8], f32[])"), "f32[8]");
}

TEST(InferReduce, FindsLossesByTheNamesOfTheSeeds) {
  EXPECT_EQ(find_op("CrossEntropyLoss"), OpId::cross_entropy);
  EXPECT_EQ(find_op("NllLoss"), OpId::nll_loss);
  EXPECT_EQ(find_op("KlDivLoss"), OpId::kl_div);
  EXPECT_EQ(find_op("PoissonNLLLoss"), OpId::poisson_nll_loss);
}

TEST(InferReduce, PrintsALaterChoice) {
  const char* text = "kl_div(f32[2], f32[2]; reduction=batchmean) @cpu:0";
  EXPECT_EQ(to_string(parse_problem(text)), text);
}

}  // namespace
}  // namespace xpuruntime
