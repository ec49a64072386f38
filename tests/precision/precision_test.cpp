#include "xpuruntime/precision/precision.h"

#include <gtest/gtest.h>

namespace xpuruntime {
namespace {

constexpr DataType f16 = DataType::float16;
constexpr DataType bf16 = DataType::bfloat16;
constexpr DataType f32 = DataType::float32;
constexpr DataType f64 = DataType::float64;

Precision resolve(const char* problem, const PrecisionRequests& requests = {}) {
  return resolve_precision(parse_problem(problem), requests);
}

TEST(Precision, IsTheInputsOwnWhereNoneIsRequested) {
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

TEST(Precision, SaysWhoRequestedIt) {
  EXPECT_EQ(resolve("relu(f16[4])", {.explicit_dtype = f16}).because, "the call asks for f16");
  EXPECT_EQ(resolve("relu(f16[4])", {.policy_default = f16}).because, "the policy's default asks for f16");
  const PrecisionHook hook = [](const Problem&) { return std::optional(f16); };
  EXPECT_EQ(resolve("relu(f16[4])", {.hook = &hook}).because, "the precision hook asks for f16");
}

TEST(Precision, ListensToTheCallThenTheHookThenThePolicy) {
  const PrecisionHook hook = [](const Problem&) { return std::optional(bf16); };
  const auto asked = [](const PrecisionRequests& requests) { return resolve("relu(f32[4])", requests).because; };
  EXPECT_EQ(asked({.explicit_dtype = f16, .hook = &hook, .policy_default = f64}).rfind("the call asks for f16", 0), 0u);
  EXPECT_EQ(asked({.hook = &hook, .policy_default = f64}).rfind("the precision hook asks for bf16", 0), 0u);
  EXPECT_EQ(asked({.policy_default = f64}).rfind("the policy's default asks for f64", 0), 0u);
}

TEST(Precision, PassesOverAHookWithoutAnOpinion) {
  const PrecisionHook silent = [](const Problem&) { return std::optional<DataType>(); };
  EXPECT_EQ(resolve("relu(f16[4])", {.hook = &silent, .policy_default = f16}).because,
            "the policy's default asks for f16");
  const PrecisionHook empty;
  EXPECT_EQ(resolve("relu(f16[4])", {.hook = &empty}).because, "the inputs are f16");
}

TEST(Precision, ShowsTheHookTheWholeProblem) {
  std::string seen;
  const PrecisionHook hook = [&](const Problem& problem) {
    seen = to_string(problem);
    return std::optional<DataType>();
  };
  resolve("relu(f32[4,8]{1,4}) @cpu:0", {.hook = &hook});
  EXPECT_EQ(seen, to_string(parse_problem("relu(f32[4,8]{1,4}) @cpu:0")));
}

TEST(Precision, ADemandIsMet) {
  for (const DataType requested : {f16, bf16, f64}) {
    EXPECT_EQ(resolve("relu(f32[4])", {.explicit_dtype = requested}).forward, requested);
    EXPECT_EQ(resolve("relu(f64[4])", {.explicit_dtype = requested}).forward, requested);
  }
}

TEST(Precision, ADefaultNarrowsNoFloat64AndTradesNo16BitFormat) {
  EXPECT_EQ(resolve("relu(f32[4])", {.policy_default = f16}).forward, f16);
  EXPECT_EQ(resolve("relu(f16[4])", {.policy_default = f32}).forward, f32);
  const Precision wide = resolve("relu(f64[4])", {.policy_default = f16});
  EXPECT_EQ(wide.forward, f64);
  EXPECT_EQ(wide.because,
            "the policy's default asks for f16, but a default does not convert these inputs, which stay f64");
  EXPECT_EQ(resolve("relu(bf16[4])", {.policy_default = f16}).forward, bf16);
  EXPECT_EQ(resolve("relu(f16[4])", {.policy_default = bf16}).forward, f16);
}

TEST(Precision, OfAutocastSaysWhichRuleItIs) {
  AmpRegistry registry;
  registry.register_rule(OpPrecisionRule::make(OpId::gelu, {OpPrecision::keep}, {OpPrecision::custom, f32}));
  const Autocast autocast = make_autocast(registry);
  const auto because = [&](const char* problem) { return resolve(problem, {.autocast = &autocast}).because; };
  EXPECT_EQ(because("matmul(f32[2,2], f32[2,2])"), "autocast, by the default rule for matmul, asks for lower");
  EXPECT_EQ(because("attention(f32[1,1,2,2], f32[1,1,2,2], f32[1,1,2,2])"),
            "autocast, by the category of attention, asks for lower");
  EXPECT_EQ(because("gelu(bf16[4])"), "autocast, by the user's rule for gelu, asks for keep and backward f32");
  EXPECT_EQ(because("softmax(f32[4])"),
            "autocast, by the default rule for softmax, asks for higher, and the inputs are f32");
}

TEST(Precision, APolicysRuleIsStrongerThanAutocastAndHoldsWithoutIt) {
  AmpRegistry registry;
  const Autocast fp16 = make_autocast(registry, true, f16), off = make_autocast(registry, false);
  const DirectionPrecisions lower{RequestedPrecision{OpPrecision::lower}, RequestedPrecision{OpPrecision::custom, f32}};
  const auto with = [&](const Autocast* autocast) {
    return resolve("softmax(f32[4])", {.policy_rule = &lower, .autocast = autocast});
  };
  EXPECT_EQ(with(&fp16).forward, f16);
  EXPECT_EQ(with(&fp16).backward, f32);
  EXPECT_EQ(with(nullptr).forward, bf16);
  EXPECT_EQ(with(&off).forward, bf16);
  EXPECT_EQ(with(&off).because, "the policy's rule for softmax asks for lower and backward f32");
}

TEST(Precision, ADirectionThatAPolicyLeavesOpenIsForTheNextToDecide) {
  AmpRegistry registry;
  const Autocast autocast = make_autocast(registry);
  const DirectionPrecisions backward{{}, RequestedPrecision{OpPrecision::custom, f32}};
  const auto with = [&](const Autocast* in_force) {
    return resolve("matmul(f32[2,2], f32[2,2])", {.policy_rule = &backward, .autocast = in_force});
  };
  EXPECT_EQ(with(&autocast).forward, bf16);
  EXPECT_EQ(with(&autocast).backward, f32);
  EXPECT_EQ(with(nullptr).forward, f32);
  EXPECT_EQ(
      with(&autocast).because,
      "autocast, by the default rule for matmul, asks for lower; the policy's rule for matmul asks for backward f32");
}

TEST(Precision, MixedInputsAreNotMadeTheOther16BitFormat) {
  AmpRegistry registry;
  const Autocast to_f16 = make_autocast(registry, true, f16), to_bf16 = make_autocast(registry);
  const auto under = [](const Autocast& autocast, const char* problem) {
    return resolve(problem, {.autocast = &autocast}).forward;
  };
  EXPECT_EQ(under(to_f16, "matmul(bf16[2,2], f32[2,2])"), f32);
  EXPECT_EQ(under(to_f16, "matmul(f16[2,2], f32[2,2])"), f16);
  EXPECT_EQ(under(to_bf16, "matmul(bf16[2,2], f16[2,2])"), f32);
  EXPECT_EQ(under(to_bf16, "add(f32[2], f16[2])"), f32);
  EXPECT_EQ(resolve("matmul:backward(bf16[2,2], bf16[2,2], f32[2,2])", {.autocast = &to_f16}).backward, f32);
  EXPECT_EQ(resolve("add(f32[2], bf16[2])", {.policy_default = f16}).forward, f32);
  EXPECT_NE(resolve("add(f32[2], bf16[2])", {.autocast = &to_f16}).because.find("no 16-bit format is made the other"),
            std::string::npos);
  EXPECT_EQ(resolve("add(f32[2], bf16[2])", {.explicit_dtype = f16}).forward, f16) << "a demand may do that";
}

TEST(Precision, GovernsWhatIsComputedWith) {
  const auto at = [](const char* text) { return to_string(at_precision(parse_problem(text), bf16)); };
  EXPECT_EQ(at("linear(f32[2,3], f32[4,3], f32[4]) @cpu:0"), "linear(bf16[2,3], bf16[4,3], bf16[4]) @cpu:0");
  EXPECT_EQ(at("layer_norm(f32[2,3], f32[3], f32[3]) @cpu:0"), "layer_norm(bf16[2,3], f32[3], f32[3]) @cpu:0");
  EXPECT_EQ(at("embedding(i64[2], f32[9,4]) @cpu:0"), "embedding(i64[2], f32[9,4]) @cpu:0");
  EXPECT_EQ(at("cast(f32[2]; dtype=f16) @cpu:0"), "cast(f32[2]; dtype=f16) @cpu:0");
  EXPECT_EQ(at("cross_entropy(f32[2,5], i64[2], f32[5]) @cpu:0"), "cross_entropy(bf16[2,5], i64[2], f32[5]) @cpu:0");
  EXPECT_EQ(at("attention(f32[1,1,2,8], f32[1,1,2,8], f32[1,1,2,8], f32[2,2]) @cpu:0"),
            "attention(bf16[1,1,2,8], bf16[1,1,2,8], bf16[1,1,2,8], f32[2,2]) @cpu:0");
  EXPECT_EQ(at("add(i32[2], i32[2]) @cpu:0"), "add(i32[2], i32[2]) @cpu:0");
  EXPECT_EQ(at("relu:backward(f32[2], f32[2]) @cpu:0 deterministic"),
            "relu:backward(bf16[2], bf16[2]) @cpu:0 deterministic");
}

TEST(Precision, KeepsAGivenOutputThatFits) {
  EXPECT_EQ(at_precision(parse_problem("relu(f32[2,2]) -> bf16[2,2]{1,2}"), bf16).outputs[0],
            make_spec(bf16, {2, 2}, {1, 2}));
  EXPECT_EQ(at_precision(parse_problem("relu(f32[2,2]) -> f32[2,2]{1,2}"), bf16).outputs[0], make_spec(bf16, {2, 2}));
  const Problem narrow = parse_problem("relu(f32[2,2]) -> bf16[2,2]");
  EXPECT_EQ(at_precision(narrow, f32), narrow) << "kernels may write it so";
  EXPECT_EQ(at_precision(narrow, f32, true).outputs[0], make_spec(f32, {2, 2})) << "or it is cast behind them";
}

TEST(Precision, NextWithoutLossHoldsEveryValue) {
  for (int i = 0; i < data_type_count; ++i) {
    const auto dtype = static_cast<DataType>(i);
    const auto next = next_lossless(dtype);
    EXPECT_TRUE(!next || is_lossless(dtype, *next)) << to_string(dtype);
  }
  EXPECT_EQ(next_lossless(bf16), f32);
  EXPECT_EQ(next_lossless(f16), f32);
  EXPECT_EQ(next_lossless(f32), f64);
  EXPECT_EQ(next_lossless(f64), std::nullopt);
  EXPECT_EQ(next_lossless(DataType::int32), std::nullopt);
}

TEST(Precision, OfOpsThatOnlyMoveValuesIsNobodysToSay) {
  const Precision precision = resolve("copy(f32[4])", {.explicit_dtype = f16});
  EXPECT_EQ(precision.forward, f32);
  EXPECT_EQ(precision.because, "the inputs are f32, and copy only moves them");
  EXPECT_EQ(resolve("kv_append(i8[2,1,9,4], i8[2,1,9,4], i8[2,1,1,4], i8[2,1,1,4], i32[2])", {}).because,
            "the inputs are i8, and kv_append only moves them");
  EXPECT_EQ(resolve("embedding(i64[2], f32[9,4])", {.explicit_dtype = f16}).because,
            "the inputs are f32, and embedding only looks them up");
  EXPECT_EQ(requested_precision(parse_problem("embedding(i64[2], f32[9,4])"), {.explicit_dtype = f16}).forward, f16);
  EXPECT_EQ(resolve("unscale(f16[4], f32[1])", {.explicit_dtype = bf16}).forward, f32);
}

TEST(Precision, IgnoresAHookThatAsksForNoFloat) {
  const PrecisionHook hook = [](const Problem&) { return std::optional(DataType::int8); };
  EXPECT_EQ(resolve("relu(f32[4])", {.hook = &hook}).forward, f32);
  EXPECT_NE(resolve("relu(f32[4])", {.hook = &hook}).because.find("only be cast to a float type"), std::string::npos);
}

TEST(Precision, NeverCastsIntegers) {
  const Precision precision = resolve("add(i32[4], i32[4])", {.policy_default = f16});
  EXPECT_EQ(precision.forward, DataType::int32);
  EXPECT_NE(precision.because.find("integers are never cast"), std::string::npos);
}

}  // namespace
}  // namespace xpuruntime
