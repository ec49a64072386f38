#include <gtest/gtest.h>

#include "core/infer_calls.h"

namespace xpuruntime {
namespace {

TEST(InferNorm, KeepsTheTypeOfTheDataBesideWiderStatistics) {
  EXPECT_EQ(outputs_of("batch_norm2d(f16[2,3,4,4], f32[3], f32[3], f32[3], f32[3])"), "f16[2,3,4,4]");
  EXPECT_EQ(outputs_of("batch_norm1d(f32[2,3], f32[3], f32[3])"), "f32[2,3]");
  EXPECT_EQ(outputs_of("batch_norm1d(f32[2,3,9]; training=true)"), "f32[2,3,9]");
  EXPECT_EQ(outputs_of("batch_norm1d(f16[2,3,9], f32[3], f32[3]; training=true)"), "f16[2,3,9], f32[3], f32[3]");
  EXPECT_EQ(outputs_of("batch_norm1d(f16[2,3,9], f32[3], f32[3])"), "f16[2,3,9]");
  EXPECT_EQ(outputs_of("batch_norm3d(f32[2,3,4,4,4], f32[3], f32[3], f32[3])"), "f32[2,3,4,4,4]");
  EXPECT_EQ(outputs_of("layer_norm(bf16[2,3,4], f32[3,4], f32[3,4]; normalized_rank=2)"), "bf16[2,3,4]");
  EXPECT_EQ(outputs_of("rms_norm(f16[2,8], f32[8])"), "f16[2,8]");
}

TEST(InferNorm, RefusesBatchNormWithoutItsParts) {
  expect_refused("batch_norm2d(f32[2,3,4,4])", "set training");
  expect_refused("batch_norm2d(f32[2,3,4,4], f32[3])", "without running_var");
  expect_refused("batch_norm2d(f32[2,3,4,4], f32[3], f32[4])", "the running_var is [4]; make it [3]");
  expect_refused("batch_norm2d(f32[2,3,4], f32[3], f32[3])", "has 3 dims, not 4");
  expect_refused("batch_norm1d(f32[3], f32[3], f32[3])", "[batch, channels]");
  expect_refused("batch_norm2d(i32[2,3,4,4], f32[3], f32[3])", "not floating");
  expect_refused("batch_norm2d(f32[2,3,4,4], f32[3], f32[3]; eps=-1)", "eps is negative");
}

TEST(InferNorm, RefusesLayersThatDoNotFit) {
  expect_refused("layer_norm(f32[2,3]; normalized_rank=3)", "normalized_rank 3 is not from 1 to the rank 2");
  expect_refused("layer_norm(f32[2,3]; normalized_rank=0)", "normalized_rank 0");
  expect_refused("layer_norm(f32[])", "the rank 0");
  expect_refused("layer_norm(f32[2,3], f32[2])", "the weight is [2]; make it [3]");
  expect_refused("layer_norm(f32[2,3], f32[3], f32[1])", "the bias is [1]; make it [3]");
  expect_refused("rms_norm(f32[2,3], f32[2])", "the weight is [2]; make it [3]");
  expect_refused("rms_norm(f32[])", "without dims");
}

TEST(InferNorm, CountsAxesFromEitherEnd) {
  EXPECT_EQ(outputs_of("softmax(f32[2,3])"), "f32[2,3]");
  EXPECT_EQ(outputs_of("softmax(f32[2,3]; dim=-2)"), "f32[2,3]");
  EXPECT_EQ(outputs_of("log_softmax(f16[0]; dim=0)"), "f16[0]");
  EXPECT_EQ(outputs_of("normalize(f32[2,3])"), "f32[2,3]");
  expect_refused("softmax(f32[2,3]; dim=2)", "dim 2 is out of range; use -2 to 1");
  expect_refused("softmax(f32[2,3]; dim=-3)", "dim -3 is out of range");
  expect_refused("softmax(f32[])", "without dims");
  expect_refused("normalize(f32[3])", "dim 1 is out of range");
  expect_refused("normalize(f32[2,3]; p=-1)", "p is negative");
}

TEST(InferNorm, CountsTheRowsThatAreNormalized) {
  const Problem problem = parse_problem("rms_norm(f32[4,5,6])");
  const auto sizes = op_info(problem.op).sizes;
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0].read(problem), std::vector<std::int64_t>{20}) << sizes[0].name;
  EXPECT_EQ(sizes[1].read(problem), std::vector<std::int64_t>{6}) << sizes[1].name;
}

}  // namespace
}  // namespace xpuruntime
