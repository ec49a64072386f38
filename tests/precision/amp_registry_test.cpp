#include "xpuruntime/precision/amp_registry.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "core/expect_error.h"
#include "xpuruntime/precision/autocast.h"

namespace xpuruntime {
namespace {

constexpr DataType f16 = DataType::float16;
constexpr DataType bf16 = DataType::bfloat16;
constexpr DataType f32 = DataType::float32;
constexpr DataType f64 = DataType::float64;

TEST(AmpConfig, IsBf16OverF32UnlessSaidOtherwise) {
  EXPECT_EQ(AmpConfig::create_default(), (AmpConfig{true, bf16, f32}));
  EXPECT_EQ(AmpConfig::create_bf16(), AmpConfig::create_default());
  EXPECT_EQ(AmpConfig::create_fp16(), (AmpConfig{true, f16, f32}));
}

TEST(AmpConfig, RefusesPrecisionsThatAreNotLowOrHigh) {
  expect_error(ErrorCode::invalid_argument, "not a low precision; give f16 or bf16",
               [] { AmpRegistry({.target_precision = f32}); });
  expect_error(ErrorCode::invalid_argument, "give f16 or bf16",
               [] { AmpRegistry({.target_precision = DataType::int8}); });
  expect_error(ErrorCode::invalid_argument, "give f32 or f64", [] { AmpRegistry({.higher_precision = bf16}); });
  AmpRegistry registry;
  expect_error(ErrorCode::invalid_argument, "give f16 or bf16", [&] { make_autocast(registry, true, f64); });
}

std::set<OpId> ops_named(std::initializer_list<std::string_view> names) {
  std::set<OpId> ops;
  for (const std::string_view name : names) ops.insert(parse_op(name));
  return ops;
}

// The two lists, written down again by hand and with the names of the seed.
TEST(AmpRegistry, StartsWithTheDefaultsOfTheLists) {
  const AmpRegistry registry;
  const std::set<OpId> low =
      ops_named({"Conv2d",         "Conv3d",  "Linear",        "MaxPool2d",      "MaxPool3d",      "AvgPool2d",
                 "AvgPool3d",      "Dropout", "BatchNorm1d",   "BatchNorm2d",    "BatchNorm3d",    "Relu",
                 "Gelu",           "Sigmoid", "Tanh",          "ElementwiseAdd", "ElementwiseMul", "ElementwiseSub",
                 "ElementwiseDiv", "MatMul",  "MatrixMultiply"});
  const std::set<OpId> high = ops_named(
      {"Softmax", "LogSoftmax", "Log", "Exp", "Sqrt", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "Normalize",
       "LayerNorm", "Embedding", "CrossEntropyLoss", "NllLoss", "KlDivLoss", "PoissonNLLLoss", "CumSum", "ReduceProd"});
  EXPECT_EQ(low.size(), 20u);  // MatMul and MatrixMultiply are one op
  EXPECT_EQ(DefaultAmpRules::default_whitelist().size(), 21u);
  EXPECT_EQ(DefaultAmpRules::default_blacklist().size(), 18u);
  for (const OpId op : all_ops()) {
    EXPECT_EQ(registry.is_whitelisted(op), low.contains(op)) << to_string(op);
    EXPECT_EQ(registry.is_blacklisted(op), high.contains(op)) << to_string(op);
    EXPECT_EQ(registry.get_rule(op).has_value(), low.contains(op) || high.contains(op)) << to_string(op);
  }
  EXPECT_EQ(registry.get_all_rules().size(), low.size() + high.size());
  EXPECT_TRUE(registry.is_whitelisted("MatrixMultiply"));
  EXPECT_TRUE(registry.is_blacklisted("CrossEntropyLoss"));
}

TEST(AmpRegistry, FollowsTheSideOfAnOpThatAProgramRegistered) {
  OpInfo info = op_info(OpId::add);
  info.name = "amp_test_add";
  info.aliases = {};
  info.autocast = AutocastSide::higher;
  const OpId op = register_op(info);
  AmpRegistry registry;
  EXPECT_EQ(registry.get_forward_dtype(op, bf16), f32);
  EXPECT_EQ(registry.source(op), RuleSource::category);
  registry.register_whitelist(op);
  EXPECT_EQ(registry.get_forward_dtype(op, f32), bf16);
}

TEST(AmpRegistry, GivesTheDtypeOfBothDirections) {
  AmpRegistry registry;
  EXPECT_EQ(registry.get_forward_dtype("matmul", f32), bf16);
  EXPECT_EQ(registry.get_backward_dtype("matmul", f32), bf16);
  EXPECT_EQ(registry.get_forward_dtype("softmax", bf16), f32);
  EXPECT_EQ(registry.get_backward_dtype("softmax", bf16), f32);
  EXPECT_EQ(AmpRegistry(AmpConfig::create_fp16()).get_forward_dtype("conv", f32), f16);
  EXPECT_EQ(AmpRegistry({.higher_precision = f64}).get_forward_dtype("exp", f32), f64);
}

// By hand from the rules of the registry: input dtype, precision, target; what comes out.
TEST(AmpRegistry, NarrowsNoFloat64TradesNo16BitFormatAndCastsNoInteger) {
  const AmpConfig to_f16 = AmpConfig::create_fp16(), to_bf16 = AmpConfig::create_bf16();
  const auto lower = [](const AmpConfig& config, DataType in) { return resolve({OpPrecision::lower}, config, in); };
  const auto higher = [](const AmpConfig& config, DataType in) { return resolve({OpPrecision::higher}, config, in); };
  EXPECT_EQ(lower(to_f16, f64), f64);
  EXPECT_EQ(lower(to_f16, bf16), bf16);
  EXPECT_EQ(lower(to_bf16, f16), f16);
  EXPECT_EQ(lower(to_f16, f16), f16);
  EXPECT_EQ(lower(to_f16, f32), f16);
  EXPECT_EQ(higher(to_f16, f64), f64);
  EXPECT_EQ(higher(to_f16, f16), f32);
  EXPECT_EQ(higher(to_f16, bf16), f32);
  EXPECT_EQ(higher({.higher_precision = f64}, f32), f64);
  for (const DataType integer :
       {DataType::int64, DataType::int32, DataType::int16, DataType::int8, DataType::uint8, DataType::boolean}) {
    for (const OpPrecision requested :
         {OpPrecision::lower, OpPrecision::higher, OpPrecision::keep, OpPrecision::custom}) {
      EXPECT_EQ(resolve({requested, f16}, to_f16, integer), integer);
    }
  }
  EXPECT_EQ(resolve({OpPrecision::custom, f16}, to_bf16, bf16), f16) << "a custom rule may do all of that";
  EXPECT_EQ(resolve({OpPrecision::custom, bf16}, to_bf16, f64), bf16);
}

TEST(AmpRegistry, ThatIsNotEnabledChangesNothingAtAll) {
  AmpRegistry registry({.enabled = false});
  registry.register_custom_op("relu", f16, f16);
  for (const char* op : {"matmul", "softmax", "relu", "add"}) {
    for (const DataType dtype : {f64, f32, f16, bf16, DataType::int32}) {
      EXPECT_EQ(registry.get_forward_dtype(op, dtype), dtype);
      EXPECT_EQ(registry.get_backward_dtype(op, dtype), dtype);
    }
  }
}

TEST(AmpRegistry, BackwardFollowsWhatForwardBecameUnlessItIsTold) {
  AmpRegistry registry;
  registry.register_rule(OpPrecisionRule::make(OpId::gelu, {OpPrecision::custom, f16}, {OpPrecision::keep}));
  EXPECT_EQ(registry.get_backward_dtype("gelu", f32), f16);
  registry.register_rule(OpPrecisionRule::make(OpId::gelu, {OpPrecision::lower}, {OpPrecision::higher}));
  EXPECT_EQ(registry.get_forward_dtype("gelu", f32), bf16);
  EXPECT_EQ(registry.get_backward_dtype("gelu", bf16), f32);
  registry.register_custom_op("gelu", bf16, f32);
  EXPECT_EQ(registry.get_forward_dtype("gelu", f32), bf16);
  EXPECT_EQ(registry.get_backward_dtype("gelu", f32), f32);
}

TEST(AmpRegistry, HigherPrioritiesWinAndTheLatestOfEqualOnes) {
  AmpRegistry registry;
  registry.register_blacklist("matmul", 5);
  EXPECT_FALSE(registry.register_rule({.op = OpId::matmul, .forward_precision = OpPrecision::lower, .priority = 4}));
  EXPECT_TRUE(registry.is_blacklisted("matmul"));
  registry.register_custom_op("matmul", f16, f32, 5);
  EXPECT_EQ(registry.get_rule("matmul")->custom_forward_dtype, f16);
  EXPECT_EQ(registry.get_rule("matmul")->priority, 5);
  registry.register_whitelist("matmul", 6);
  EXPECT_TRUE(registry.is_whitelisted("matmul"));
  registry.register_blacklist("relu", -1);
  EXPECT_TRUE(registry.is_blacklisted("relu")) << "defaults stand below every rule of a user's";
}

TEST(AmpRegistry, DefaultsComeBackAndNeverWipeAUsersRule) {
  AmpRegistry registry;
  registry.register_blacklist("matmul");
  DefaultAmpRules::apply_default_rules(registry);
  EXPECT_TRUE(registry.is_blacklisted("matmul"));
  EXPECT_EQ(registry.source(OpId::matmul), RuleSource::user);
  EXPECT_TRUE(registry.unregister("matmul"));
  EXPECT_TRUE(registry.is_whitelisted("matmul"));
  EXPECT_EQ(registry.source(OpId::matmul), RuleSource::defaults);
  EXPECT_FALSE(registry.unregister("matmul")) << "there is no rule of the user's any more";
  EXPECT_TRUE(registry.is_whitelisted("matmul"));
}

TEST(AmpRegistry, WithoutAnyRulesTheCategoryDecides) {
  AmpRegistry registry;
  registry.register_blacklist("matmul");
  registry.clear();
  EXPECT_TRUE(registry.get_all_rules().empty());
  EXPECT_EQ(registry.get_rule("matmul"), std::nullopt);
  EXPECT_EQ(registry.source(OpId::matmul), RuleSource::category);
  EXPECT_FALSE(registry.is_whitelisted("matmul"));
  const std::pair<const char*, DataType> expected[] = {{"matmul", bf16},    {"conv2d", bf16},       {"attention", bf16},
                                                       {"reduce_sum", f32}, {"cross_entropy", f32}, {"softmax", f32},
                                                       {"layer_norm", f32}, {"add", f16},           {"relu", f16},
                                                       {"max_pool2d", f16}, {"embedding", f16},     {"copy", f16}};
  for (const auto& [op, dtype] : expected) {
    const DataType input = dtype == bf16 ? f32 : f16;
    EXPECT_EQ(registry.get_forward_dtype(op, input), dtype) << op;
  }
  DefaultAmpRules::apply_default_rules(registry);
  EXPECT_TRUE(registry.is_whitelisted("matmul"));
}

std::vector<TensorSpec> same(std::span<const TensorSpec> inputs, const Attributes&) { return {inputs[0]}; }

TEST(AmpRegistry, TakesOpsThatProgramsRegister) {
  const OpId sum = register_op({.name = "amp_test_sum", .category = OpCategory::reduction, .infer = same});
  const OpId product = register_op({.name = "amp_test_product", .category = OpCategory::matrix, .infer = same});
  AmpRegistry registry;
  EXPECT_EQ(registry.get_forward_dtype(sum, bf16), f32);
  EXPECT_EQ(registry.get_forward_dtype(product, f32), bf16);
  registry.register_blacklist(product);
  EXPECT_EQ(registry.get_forward_dtype("amp_test_product", bf16), f32);
}

TEST(AmpRegistry, RefusesRulesThatCannotBeRight) {
  AmpRegistry registry;
  const auto before = registry.get_all_rules();
  const auto refuse = [&](const char* part, const OpPrecisionRule& rule) {
    expect_error(ErrorCode::invalid_argument, part, [&] { registry.register_rule(rule); });
  };
  refuse("no dtype is given", {.op = OpId::relu, .forward_precision = OpPrecision::custom});
  refuse("backward: the precision is custom", {.op = OpId::relu, .backward_precision = OpPrecision::custom});
  refuse("not a precision", {.op = OpId::relu, .forward_precision = static_cast<OpPrecision>(9)});
  refuse("make the precision custom", {.op = OpId::relu, .custom_forward_dtype = f16});
  refuse("give f32, f16, bf16 or f64", OpPrecisionRule::make(OpId::relu, {OpPrecision::custom, DataType::int8}, {}));
  refuse("give f32, f16, bf16 or f64",
         OpPrecisionRule::make(OpId::relu, {}, {OpPrecision::custom, DataType::tfloat32}));
  expect_error(ErrorCode::unknown_name, "did you mean matmul", [&] { registry.register_whitelist("matmull"); });
  expect_error(ErrorCode::unknown_name, "matmul", [&] { registry.get_forward_dtype("matmull", f32); });
  EXPECT_THROW(registry.register_whitelist(static_cast<OpId>(60000)), Error);
  EXPECT_THROW(registry.get_rule(static_cast<OpId>(60000)), Error);
  EXPECT_THROW(registry.get_forward_dtype(static_cast<OpId>(60000), f32), Error);
  EXPECT_EQ(registry.get_all_rules(), before);
}

TEST(AmpRegistry, HandsRulesOutByValue) {
  AmpRegistry registry;
  OpPrecisionRule rule = *registry.get_rule("matmul");
  rule.forward_precision = OpPrecision::higher;
  EXPECT_NE(registry.get_rule("matmul"), rule);
}

TEST(AmpRegistry, SnapshotsStayAsTheyWere) {
  AmpRegistry registry;
  const auto before = registry.snapshot();
  EXPECT_EQ(registry.snapshot(), before) << "the same as long as nothing changes";
  registry.register_blacklist("matmul");
  const auto after = registry.snapshot();
  EXPECT_NE(before->version(), after->version());
  EXPECT_EQ(before->rule(OpId::matmul).forward_precision, OpPrecision::lower);
  EXPECT_EQ(after->rule(OpId::matmul).forward_precision, OpPrecision::higher);
  EXPECT_EQ(before->rule(OpId::attention).forward_precision, OpPrecision::lower) << "by its category";
  EXPECT_EQ(before->source(OpId::attention), RuleSource::category);
}

TEST(AmpRegistry, KeepsEveryRuleExactly) {
  AmpRegistry registry;
  std::mt19937 random(7);
  constexpr DataType floats[] = {f64, f32, f16, bf16, DataType::float8_e4m3, DataType::float8_e5m2};
  const auto requested = [&]() -> RequestedPrecision {
    const auto precision = static_cast<OpPrecision>(random() % 4);
    if (precision != OpPrecision::custom) return {precision};
    return {precision, floats[random() % std::size(floats)]};
  };
  for (int i = 0; i < 1000; ++i) {
    const auto op = static_cast<OpId>(random() % static_cast<unsigned>(OpId::builtin_count));
    const int priority = static_cast<int>(random());
    const OpPrecisionRule rule = OpPrecisionRule::make(op, requested(), requested(), priority);
    registry.unregister(op);
    ASSERT_TRUE(registry.register_rule(rule));
    ASSERT_EQ(registry.get_rule(op), rule);
    ASSERT_EQ(registry.snapshot()->rule(op), rule);
  }
}

// Readers see one of the two rules, never a mixture of them.
TEST(AmpRegistry, IsReadWhileItIsWritten) {
  AmpRegistry registry;
  registry.register_custom_op("matmul", f16, f32);
  std::atomic<bool> stop = false;
  std::atomic<int> mixtures = 0, reads = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const OpPrecisionRule rule = registry.rule_in_force(OpId::matmul);
        const bool first = rule.custom_forward_dtype == f16 && rule.custom_backward_dtype == f32;
        const bool second = rule.custom_forward_dtype == bf16 && rule.custom_backward_dtype == f64;
        mixtures += !first && !second;
        reads += registry.get_forward_dtype(OpId::softmax, f16) == f32;
      }
    });
  }
  for (int i = 0; i < 20000 || reads < 1000; ++i) {
    i % 2 == 0 ? registry.register_custom_op("matmul", bf16, f64) : registry.register_custom_op("matmul", f16, f32);
    if (i % 64 == 0) registry.snapshot();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(mixtures, 0);
}

TEST(RequestedPrecision, IsReadInEverySpelling) {
  EXPECT_EQ(parse_requested_precision("lower"), RequestedPrecision{OpPrecision::lower});
  EXPECT_EQ(parse_requested_precision("higher"), RequestedPrecision{OpPrecision::higher});
  EXPECT_EQ(parse_requested_precision("keep"), RequestedPrecision{OpPrecision::keep});
  EXPECT_EQ(parse_requested_precision("half"), (RequestedPrecision{OpPrecision::custom, f16}));
  EXPECT_EQ(to_string(parse_requested_precision("bfloat16")), "bf16");
  expect_error(ErrorCode::unknown_name, "did you mean lower", [] { parse_requested_precision("lowr"); });
  expect_error(ErrorCode::invalid_argument, "not a float type", [] { parse_requested_precision("i8"); });
}

}  // namespace
}  // namespace xpuruntime
