#include "xpuruntime/precision/precision.h"

#include <gtest/gtest.h>

namespace xpuruntime {
namespace {

constexpr DataType f16 = DataType::float16;
constexpr DataType bf16 = DataType::bfloat16;
constexpr DataType f32 = DataType::float32;
constexpr DataType f64 = DataType::float64;

Precision resolve(const char* problem, const PrecisionWishes& wishes = {}) {
  return resolve_precision(parse_problem(problem), wishes);
}

TEST(Precision, IsTheInputsOwnWhereNobodyWishes) {
  const Precision precision = resolve("relu(bf16[4])");
  EXPECT_EQ(precision.forward, bf16);
  EXPECT_EQ(precision.backward, bf16);
  EXPECT_EQ(precision.because, "the inputs are bf16");
}

TEST(Precision, OfMixedInputsIsTheOneThatLosesNothing) {
  EXPECT_EQ(resolve("matmul(f16[2,2], bf16[2,2])").forward, f32);
  EXPECT_EQ(resolve("matmul(f16[2,2], f32[2,2])").forward, f32);
  EXPECT_EQ(resolve("add(f32[2], f64[2])").forward, f64);
}

TEST(Precision, SaysWhoAskedWhenTheWishIsGranted) {
  EXPECT_EQ(resolve("relu(f16[4])", {f16, nullptr, {}}).because, "the call asks for f16");
  EXPECT_EQ(resolve("relu(f16[4])", {{}, nullptr, f16}).because, "the policy's default asks for f16");
  const PrecisionHook hook = [](const Problem&) { return std::optional(f16); };
  EXPECT_EQ(resolve("relu(f16[4])", {{}, &hook, {}}).because, "the precision hook asks for f16");
}

TEST(Precision, ListensToTheCallThenTheHookThenThePolicy) {
  const PrecisionHook hook = [](const Problem&) { return std::optional(bf16); };
  const auto asked = [](const PrecisionWishes& wishes) { return resolve("relu(f32[4])", wishes).because; };
  EXPECT_EQ(asked({f16, &hook, f64}).rfind("the call asks for f16", 0), 0u);
  EXPECT_EQ(asked({{}, &hook, f64}).rfind("the precision hook asks for bf16", 0), 0u);
  EXPECT_EQ(asked({{}, nullptr, f64}).rfind("the policy's default asks for f64", 0), 0u);
}

TEST(Precision, PassesOverAHookWithoutAnOpinion) {
  const PrecisionHook silent = [](const Problem&) { return std::optional<DataType>(); };
  EXPECT_EQ(resolve("relu(f16[4])", {{}, &silent, f16}).because, "the policy's default asks for f16");
  const PrecisionHook empty;
  EXPECT_EQ(resolve("relu(f16[4])", {{}, &empty, {}}).because, "the inputs are f16");
}

TEST(Precision, ShowsTheHookTheWholeProblem) {
  std::string seen;
  const PrecisionHook hook = [&](const Problem& problem) {
    seen = to_string(problem);
    return std::optional<DataType>();
  };
  resolve("relu(f32[4,8]{1,4}) @cpu:0", {{}, &hook, {}});
  EXPECT_EQ(seen, to_string(parse_problem("relu(f32[4,8]{1,4}) @cpu:0")));
}

TEST(Precision, NeverCastsBehindTheCallersBack) {
  for (const DataType wish : {f16, bf16, f64}) {
    const Precision precision = resolve("relu(f32[4])", {wish, nullptr, {}});
    EXPECT_EQ(precision.forward, f32);
    EXPECT_EQ(precision.backward, f32);
    EXPECT_NE(precision.because.find("the inputs are f32"), std::string::npos);
    EXPECT_NE(precision.because.find("cast them to get " + std::string(to_string(wish))), std::string::npos);
  }
}

TEST(Precision, NeverCastsIntegers) {
  const Precision precision = resolve("add(i32[4], i32[4])", {{}, nullptr, f16});
  EXPECT_EQ(precision.forward, DataType::int32);
  EXPECT_NE(precision.because.find("integers are never cast"), std::string::npos);
}

}  // namespace
}  // namespace xpuruntime
