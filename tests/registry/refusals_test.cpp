#include "xpuruntime/registry/refusals.h"

#include <gtest/gtest.h>

namespace xpuruntime {
namespace {

std::string refusal(const char* text, DataTypeSet inputs, DataTypeSet outputs) {
  return takes_dtypes(parse_problem(text), inputs, outputs).reason;
}

TEST(DataTypeSet, HoldsWhatItIsMadeOfAndReadsAsASentence) {
  EXPECT_EQ(to_string(fast_floats), "f32, f16 and bf16");
  EXPECT_EQ(to_string(DataTypeSet(DataType::int8)), "i8");
  EXPECT_EQ(to_string(DataTypeSet{DataType::uint8, DataType::int8}), "i8 and u8");
  EXPECT_EQ(to_string(floats), "floating types");
  EXPECT_EQ(to_string(any_dtype), "any dtype");
  EXPECT_EQ(to_string(DataTypeSet()), "no dtype");
  for (int i = 0; i < data_type_count; ++i) {
    const auto dtype = static_cast<DataType>(i);
    EXPECT_TRUE(any_dtype.contains(dtype)) << to_string(dtype);
    EXPECT_EQ(floats.contains(dtype), is_floating(dtype)) << to_string(dtype);
  }
}

TEST(TakesDtypes, AsksInputsAndOutputs) {
  const DataTypeSet bf16 = DataType::bfloat16;
  EXPECT_EQ(refusal("add(f32[4], f16[4])", fast_floats, fast_floats), "");
  EXPECT_EQ(refusal("add(f32[4], i32[4])", fast_floats, fast_floats),
            "input 1 is i32, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(refusal("matmul(bf16[4,4], bf16[4,4]) -> f32[4,4]", bf16, fast_floats), "");
  EXPECT_EQ(refusal("matmul(f32[4,4], f32[4,4])", bf16, fast_floats), "input 0 is f32, and this kernel takes bf16");
  EXPECT_EQ(refusal("matmul(bf16[4,4], bf16[4,4]) -> f32[4,4]", bf16, bf16),
            "output 0 is f32, and this kernel takes bf16");
}

TEST(TakesDtypes, LetsOptionalInputsBeOfEither) {
  const DataTypeSet bytes = {DataType::int8, DataType::uint8};
  EXPECT_EQ(refusal("linear(i8[4,4], i8[4,4], i32[4]) -> i32[4,4]", bytes, DataType::int32), "");
  EXPECT_EQ(refusal("linear(i8[4,4], i8[4,4], i64[4]) -> i32[4,4]", bytes, DataType::int32),
            "input 2 is i64, and this kernel takes i32, i8 and u8");
}

TEST(TakesDtypes, DoesNotAskIndicesCountsAndMasks) {
  EXPECT_EQ(refusal("cross_entropy(f32[4,9], i64[4])", fast_floats, fast_floats), "");
  EXPECT_EQ(refusal("cross_entropy(f32[4,9], f64[4,9])", fast_floats, fast_floats),
            "input 1 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(refusal("embedding(i32[4], f32[9,2])", fast_floats, fast_floats), "");
  EXPECT_EQ(refusal("embedding(i32[4], i8[9,2])", fast_floats, fast_floats),
            "input 1 is i8, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(refusal("cast(i32[4]; dtype=f32)", fast_floats, fast_floats),
            "input 0 is i32, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(refusal("dropout(f32[4], i64[2])", fast_floats, fast_floats), "");
  const char* masked = "attention(f32[1,1,2,4], f32[1,1,2,4], f32[1,1,2,4], bool[2,2])";
  EXPECT_EQ(refusal(masked, fast_floats, fast_floats), "");
  // Scales stay in their dtype where the op is cast, but are computed with.
  EXPECT_EQ(refusal("layer_norm(f32[4,9], f64[9])", fast_floats, fast_floats),
            "input 1 is f64, and this kernel takes f32, f16 and bf16");
}

TEST(TakesDtypes, LetsGradientsBeOfEither) {
  EXPECT_EQ(refusal("softmax:backward(f32[4,9], f64[4,9])", fast_floats, fast_floats),
            "input 1 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(refusal("softmax:backward(f32[4,9], f64[4,9])", fast_floats, floats), "");
  EXPECT_EQ(refusal("matmul:backward(bf16[4,4], bf16[4,4], f32[4,4])", DataType::bfloat16, fast_floats), "");
  EXPECT_EQ(refusal("matmul:backward(f32[4,4], bf16[4,4], f32[4,4])", DataType::bfloat16, fast_floats),
            "input 0 is f32, and this kernel takes bf16");
}

TEST(Refusals, NameTheTensor) {
  EXPECT_EQ(is_contiguous(parse_problem("add(f32[2,2], f32[2,2]{1,2})")).reason, "input 1 is not contiguous");
  EXPECT_EQ(is_contiguous(parse_problem("relu(f32[2,2]) -> f32[2,2]{1,2}")).reason, "output 0 is not contiguous");
  EXPECT_TRUE(is_contiguous(parse_problem("relu(f32[2,2])")).supported);
  const Problem across = parse_problem("add(f32[2,2]{1,2}, f32[2,2]) -> f32[2,2]{1,2}");
  EXPECT_TRUE(is_contiguous(across, 1).supported);
  EXPECT_EQ(is_contiguous(parse_problem("linear(f32[2,2]{1,2}, f32[2,2], f32[2]{3})"), 1).reason,
            "input 2 is not contiguous");
  EXPECT_EQ(is_contiguous("output 0", across.outputs[0]).reason, "output 0 is not contiguous");
  EXPECT_TRUE(is_contiguous("input 1", across.inputs[1]).supported);
  EXPECT_EQ(has_contiguous_rows("input 0", across.inputs[0]).reason, "the rows of input 0 are not contiguous");
  EXPECT_TRUE(has_contiguous_rows("input 0", make_spec(DataType::float32, {4, 2}, {9, 1})).supported);
  EXPECT_TRUE(has_contiguous_rows("input 0", make_spec(DataType::float32, {4, 1}, {9, 5})).supported);
  EXPECT_EQ(is_aligned(parse_problem("add(f32[2], f64[2]/4)")).reason, "input 1 is not aligned to its elements");
  EXPECT_TRUE(is_aligned(parse_problem("add(f32[2]/4, i8[2]/1)")).supported);
  EXPECT_EQ(is_same_dtype("output 0", DataType::float16, "the input's", DataType::float32).reason,
            "output 0 is f16, and this kernel takes the input's f32");
  EXPECT_TRUE(is_same_dtype("output 0", DataType::float16, "the input's", DataType::float16).supported);
}

TEST(Refusals, NameTheFirstInputOfAnotherDtype) {
  EXPECT_EQ(has_one_dtype(parse_problem("matmul(f64[2,2], f32[2,2])")).reason,
            "input 1 is f32, and this kernel takes the output's f64");
  EXPECT_TRUE(has_one_dtype(parse_problem("matmul(f64[2,2], f64[2,2])")).supported);
  const Problem looked_up = parse_problem("embedding(i64[2], f32[2,2])");
  EXPECT_EQ(has_one_dtype(looked_up).reason, "input 0 is i64, and this kernel takes the output's f32");
  EXPECT_TRUE(has_one_dtype(looked_up, 1).supported);
}

TEST(Refusals, AskOnlyGivenTensorsForElements) {
  EXPECT_EQ(is_not_empty(parse_problem("matmul(f32[2,3], f32[3,0])")).reason, "input 1 is empty");
  EXPECT_EQ(is_not_empty(parse_problem("reduce_sum(f32[0,3]; dim=0)")).reason, "input 0 is empty");
  EXPECT_TRUE(is_not_empty(parse_problem("matmul(f32[2,3], f32[3,2])")).supported);
  Problem scaled = parse_problem("matmul(f32[2,3], f32[3,2])");
  scaled.inputs.push_back(no_input());
  EXPECT_TRUE(is_not_empty(scaled).supported);
}

TEST(Refusals, NameTheLimit) {
  EXPECT_EQ(is_at_most("m", 17, 16).reason, "m = 17 is over 16");
  EXPECT_TRUE(is_at_most("m", 16, 16).supported);
}

TEST(Refusals, NameWhatTheDeviceHasNot) {
  DeviceProfile profile;
  profile.compute_capability_major = 8;
  profile.compute_capability_minor = 6;
  EXPECT_TRUE(has_compute_capability(profile, 8).supported);
  EXPECT_TRUE(has_compute_capability(profile, 7, 9).supported);
  EXPECT_EQ(has_compute_capability(profile, 8, 9).reason, "compute capability 8.6 is below 8.9");
  EXPECT_EQ(has_compute_capability(profile, 9).reason, "compute capability 8.6 is below 9.0");
  profile.cpu_features = {"avx2", "avx512f"};
  EXPECT_TRUE(has_cpu_features(profile, {"avx512f", "avx2"}).supported);
  EXPECT_EQ(has_cpu_features(profile, {"avx2", "amx_bf16", "amx_tile"}).reason, "the CPU has no amx_bf16");
  profile.library_versions["cublasLt"] = "13.0";
  EXPECT_TRUE(has_library(profile, "cublasLt").supported);
  EXPECT_EQ(has_library(profile, "cublas").reason, "libcublas is not installed");
}

Verdict first(const Problem&, const DeviceProfile&) { return Verdict::no("the first"); }
Verdict second(const Problem&, const DeviceProfile&) { return Verdict::no("the second"); }
Verdict fine(const Problem&, const DeviceProfile&) { return Verdict::yes(); }

TEST(Refusals, TheFirstStands) {
  const Problem problem = parse_problem("relu(f32[2])");
  EXPECT_EQ(first_refusal({fine, first, second}, problem, {}).reason, "the first");
  EXPECT_TRUE(first_refusal({fine}, problem, {}).supported);
}

}  // namespace
}  // namespace xpuruntime
