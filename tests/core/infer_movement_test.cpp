#include <gtest/gtest.h>

#include "core/infer_calls.h"

namespace xpuruntime {
namespace {

TEST(InferMovement, AddsTheFeaturesToTheShapeOfTheIndices) {
  EXPECT_EQ(outputs_of("embedding(i64[2,7], bf16[100,64])"), "bf16[2,7,64]");
  EXPECT_EQ(outputs_of("embedding(u8[], f32[100,64])"), "f32[64]");
  EXPECT_EQ(outputs_of("embedding(i32[0], f32[100,64])"), "f32[0,64]");
  expect_refused("embedding(f32[2], f32[100,64])", "swap the inputs");
  expect_refused("embedding(bool[2], f32[100,64])", "not integer");
  expect_refused("embedding(i64[2], f32[100])", "has 1 dims, not 2");
  expect_refused("embedding(i64[1,1,1,1,1,1,1,1], f32[3,4])", "9 dims");
}

TEST(InferMovement, CastsAnyTypeToAny) {
  EXPECT_EQ(outputs_of("cast(bool[2,2]; dtype=f8e4m3)"), "f8e4m3[2,2]");
  EXPECT_EQ(outputs_of("cast(f64[]; dtype=bool)"), "bool[]");
  EXPECT_EQ(outputs_of("copy(bool[4,8]{1,4})"), "bool[4,8]");
  expect_refused("cast(i8[4611686018427387904]; dtype=f32)", "63 bits");
}

TEST(InferMovement, PermutesDims) {
  EXPECT_EQ(outputs_of("transpose(f32[2,3,4])"), "f32[4,3,2]");
  EXPECT_EQ(outputs_of("transpose(f32[2,3,4]; dims=0,2,1)"), "f32[2,4,3]");
  EXPECT_EQ(outputs_of("transpose(f32[2,3,4]; dims=-1,0,1)"), "f32[4,2,3]");
  EXPECT_EQ(outputs_of("transpose(f32[])"), "f32[]");
  expect_refused("transpose(f32[2,3]; dims=0)", "1 entries");
  expect_refused("transpose(f32[2,3]; dims=0,-2)", "twice");
  expect_refused("transpose(f32[2,3]; dims=0,2)", "dim 2 is out of range; use -2 to 1");
}

TEST(InferMovement, PadCutsOffNoMoreThanThereIs) {
  EXPECT_EQ(outputs_of("pad(f32[6,7]; pads=-2,3,1,-1)"), "f32[6,8]");
  EXPECT_EQ(outputs_of("pad(f32[2]; pads=-1,-1)"), "f32[0]");
  EXPECT_EQ(outputs_of("pad(f32[2]; pads=-2,4)"), "f32[4]");
  for (const char* const pads :
       {"-3,1", "1,-3", "-1,-2", "-2,-1", "-3,9", "9,-3", "-9223372036854775808,-9223372036854775808",
        "-9223372036854775808,9223372036854775807", "9223372036854775807,1"}) {
    expect_refused(std::string("pad(f32[2]; pads=") + pads + ")", "pads leave no valid extent of dim 0");
  }
  EXPECT_EQ(outputs_of("pad(f32[0]; pads=0,2)"), "f32[2]");
  expect_refused("pad(f32[0]; pads=-1,2)", "pads leave no valid extent");
}

TEST(InferMovement, FlipsEachDimOnce) {
  EXPECT_EQ(outputs_of("flip(f32[2,3]; dims=0,-1)"), "f32[2,3]");
  expect_refused("flip(f32[2,3]; dims=0,-2)", "dims names -2 twice");
  expect_refused("flip(f32[2,3]; dims=2)", "dim 2 is out of range; use -2 to 1");
}

TEST(InferMovement, JoinsAlongOneDim) {
  EXPECT_EQ(outputs_of("concat(f32[2,3], f32[5,3], f32[0,3])"), "f32[7,3]");
  EXPECT_EQ(outputs_of("concat(f16[2,3], bf16[2,1]; dim=-1)"), "f32[2,4]");
  EXPECT_EQ(outputs_of("concat(bool[1])"), "bool[1]");
  expect_refused("concat(f32[2,3], f32[2,4])", "differ outside dim 0");
  expect_refused("concat(f32[2,3], f32[2])", "differ outside dim 0");
  expect_refused("concat(f32[2], bool[2])", "cast them to one type");
  expect_refused("concat(f32[])", "without dims");
  expect_refused("concat(i8[9223372036854775807], i8[9223372036854775807])", "fit 63 bits");
}

TEST(InferMovement, CutsAsPythonDoes) {
  EXPECT_EQ(outputs_of("slice(f32[10,2])"), "f32[10,2]");
  EXPECT_EQ(outputs_of("slice(f32[10,2]; start=2 end=7)"), "f32[5,2]");
  EXPECT_EQ(outputs_of("slice(f32[10]; start=1 end=-1 step=3)"), "f32[3]");  // 1, 4, 7
  EXPECT_EQ(outputs_of("slice(f32[10]; start=-3)"), "f32[3]");
  EXPECT_EQ(outputs_of("slice(f32[10]; start=-99 end=99)"), "f32[10]");
  EXPECT_EQ(outputs_of("slice(f32[10]; start=7 end=2)"), "f32[0]");
  EXPECT_EQ(outputs_of("slice(f32[2,10]; dim=-1 end=4)"), "f32[2,4]");
  EXPECT_EQ(outputs_of("slice(f32[10]; start=-9223372036854775808 step=9223372036854775807)"), "f32[1]");
  expect_refused("slice(f32[10]; step=0)", "give 1 or more");
  expect_refused("slice(f32[10]; dim=1)", "dim 1 is out of range");
}

}  // namespace
}  // namespace xpuruntime
