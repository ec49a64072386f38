#include "xpuruntime/select/range_rule.h"

#include <gtest/gtest.h>

#include "core/expect_error.h"
#include "select/rule_implication.h"
#include "select/rule_index.h"

namespace xpuruntime {
namespace {

DeviceProfile cpu() {
  DeviceProfile profile;
  profile.type = DeviceType::cpu;
  return profile;
}

PolicyRule rule_of(const char* range, const char* kernel = "reference") {
  return range_rule(parse_problem_range(range), kernel);
}

bool matches(const PolicyRule& rule, const char* problem) {
  const std::vector<PolicyRule> rules = {rule};
  bool found = false;
  RuleIndex(rules).any_match(parse_problem(problem), cpu(), [&](std::size_t, const std::string& thrown) {
    EXPECT_EQ(thrown, "");
    return found = true;
  });
  EXPECT_EQ(rule.matches(parse_problem(problem), cpu()), found) << problem;
  return found;
}

TEST(RangeRule, MatchesSizesInsideAndNothingElse) {
  const PolicyRule rule = rule_of("softmax(f32[b,s,s]) where b=1..4, s=2..64");
  rule.check();
  for (const char* text : {"softmax(f32[1,2,2])", "softmax(f32[4,64,64])", "softmax(f32[3,17,17]/4)",
                           "softmax(f32[3,17,17]) @cpu:1", "softmax(f32[3,17,17]) threads=1"}) {
    EXPECT_TRUE(matches(rule, text)) << text;
  }
  for (const char* text :
       {"softmax(f32[1,1,1])", "softmax(f32[5,2,2])", "softmax(f32[4,65,65])", "softmax(f32[1,2,3])",
        "softmax(f32[2,2])", "softmax(bf16[1,2,2])", "softmax(f32[1,2,2]; dim=0)", "softmax(f32[1,4,4]{16,1,4})",
        "log_softmax(f32[1,2,2])", "softmax(f32[1,2,2]) deterministic", "softmax:backward(f32[1,2,2], f32[1,2,2])"}) {
    EXPECT_FALSE(matches(rule, text)) << text;
  }
  DeviceProfile gpu = cpu();
  gpu.type = DeviceType::nvidia;
  EXPECT_FALSE(rule.matches(parse_problem("softmax(f32[1,2,2]) @cuda:0"), gpu));
}

TEST(RangeRule, LimitsThatItNamesMustBeThose) {
  const PolicyRule rule = rule_of("relu(f32[n]) @cpu:0 threads=2 where n=1..9");
  EXPECT_TRUE(matches(rule, "relu(f32[3]) threads=2"));
  EXPECT_FALSE(matches(rule, "relu(f32[3]) threads=1"));
  EXPECT_FALSE(matches(rule, "relu(f32[3])"));
}

TEST(RangeRule, MayAskForMore) {
  PolicyRule rule = rule_of("relu(f32[n]) where n=1..64");
  rule.when["inputs.0.shape.0"] = {{Comparison::multiple_of, {std::int64_t{8}}}};
  EXPECT_TRUE(matches(rule, "relu(f32[16])"));
  EXPECT_FALSE(matches(rule, "relu(f32[17])"));
  EXPECT_FALSE(matches(rule, "relu(f32[72])"));
}

TEST(RangeRule, IsWrittenAndReadInFewLines) {
  KernelPolicy policy;
  policy.rules = {rule_of("relu(f32[n]) where n=1..8", "simd"), rule_of("relu(f32[n]) where n=9..128")};
  const std::string json = policy.to_json();
  EXPECT_EQ(KernelPolicy::from_json(json), policy);
  EXPECT_LE(std::count(json.begin(), json.end(), '\n'), 16);
  EXPECT_EQ(
      KernelPolicy::from_json(R"({"rules": [{"op": "relu", "range": "Relu( float[n] )where n=1..8", "use": "simd"},
      {"op": "relu", "range": "relu(f32[n]) where n=9..128", "use": "reference"}]})"),
      policy);
}

TEST(RangeRule, WrongOnesAreRefusedWithTheirPlace) {
  const auto refused = [](const std::string& range, const std::string& why) {
    expect_invalid(why, [&] {
      KernelPolicy::from_json("{\"rules\": [{\"op\": \"relu\", \"range\": " + range + ", \"use\": \"simd\"}]}");
    });
  };
  refused("\"relu(f32[n]) where n=9..1\"", "column 27: field 'rules[0].range' is wrong: column 22: the range runs");
  refused("\"relu(f32[8])\"", "column 13: there are no ranges");
  refused("\"exp(f32[n]) where n=1..9\"", "the range is of exp, the rule of relu");
  refused("7", "field 'rules[0].range' must be a string");
  PolicyRule by_hand = rule_of("relu(f32[n]) where n=1..9", "simd");
  by_hand.range = "relu(f32[n]) where n=1..9";  // without its device
  expect_invalid("write relu(f32[n]) @cpu:0 where n=1..9", [&] { by_hand.check(); });
}

TEST(RangeRule, OneThatAnotherHoldsIsHiddenByIt) {
  const PolicyRule wide = rule_of("relu(f32[n]) where n=1..64"), narrow = rule_of("relu(f32[m]) where m=3..5");
  EXPECT_TRUE(implies(narrow, wide));
  EXPECT_FALSE(implies(wide, narrow));
  EXPECT_FALSE(implies(rule_of("relu(f32[n,n]) where n=3..5"), rule_of("relu(f32[n,m]) where n=1..9, m=1..9")));
  PolicyRule any;
  any.op = OpId::relu;
  EXPECT_TRUE(implies(narrow, any));
  EXPECT_FALSE(implies(any, wide));
}

TEST(RangeRule, NewOnesReplaceThoseOfTheSameRangeAndComeBeforeTheOthers) {
  const ProblemRange range = parse_problem_range("relu(f32[n]) where n=1..64");
  KernelPolicy policy;
  PolicyRule any;
  any.op = OpId::relu;
  any.use = {"reference"};
  policy.rules = {any};
  policy = with_range_rules(policy, range,
                            {rule_of("relu(f32[n]) where n=1..8", "simd"), rule_of("relu(f32[n]) where n=9..64")});
  ASSERT_EQ(policy.rules.size(), 3u);
  EXPECT_EQ(policy.rules.back(), any);
  policy = with_range_rules(policy, range, {rule_of("relu(f32[n]) where n=1..64", "simd")});
  ASSERT_EQ(policy.rules.size(), 2u);
  EXPECT_EQ(policy.rules.front().use.front(), "simd");
  // A range under a limit is asked before one without: the limit is not there to be asked for.
  const ProblemRange limited = parse_problem_range("relu(f32[n]) threads=1 where n=1..64");
  policy = with_range_rules(policy, limited, {rule_of("relu(f32[n]) threads=1 where n=1..64")});
  ASSERT_EQ(policy.rules.size(), 3u);
  EXPECT_NE(policy.rules.front().range.find("threads=1"), std::string::npos);
}

TEST(RangeRule, NewOnesLeaveThoseAloneThatDecideOtherSizesOfTheRange) {
  const ProblemRange range = parse_problem_range("relu(f32[n]) where n=1..96");
  KernelPolicy policy;
  policy.rules = {rule_of("relu(f32[n]) where n=1..64"), rule_of("relu(f32[n]) where n=60..90", "simd")};
  EXPECT_EQ(with_range_rules(policy, range, {}), policy);
  const PolicyRule rest = rule_of("relu(f32[n]) where n=65..96", "simd");
  // The first that holds a size decided it, and still does.
  const KernelPolicy wider = with_range_rules(policy, range, {rest});
  ASSERT_EQ(wider.rules.size(), 2u);
  EXPECT_EQ(wider.rules[0], policy.rules[0]);
  EXPECT_EQ(wider.rules[1], rest);
  // Two of them together leave nothing of the second.
  const KernelPolicy hidden = with_range_rules(
      policy, range, {rule_of("relu(f32[n]) where n=2..70", "simd"), rule_of("relu(f32[n]) where n=71..90", "other")});
  ASSERT_EQ(hidden.rules.size(), 3u);
  EXPECT_EQ(hidden.rules[2], policy.rules[0]);
}

TEST(RangeRule, NeighboursOfOneKernelBecomeOneRule) {
  const ProblemRange range = parse_problem_range("relu(f32[n]) where n=1..20");
  PolicyRule any;
  any.op = OpId::relu;
  any.use = {"reference"};
  PolicyRule named = rule_of("relu(f32[n]) where n=19..20", "simd");
  named.name = "mine";
  const PolicyRule other = rule_of("relu(f32[n,4]) where n=1..20", "simd");
  KernelPolicy policy;
  policy.rules = {other,
                  rule_of("relu(f32[n]) where n=7..7", "simd"),
                  rule_of("relu(f32[n]) where n=10..10", "simd"),
                  rule_of("relu(f32[n]) where n=12..15"),
                  any,
                  named,
                  rule_of("relu(f32[n]) where n=16..16")};
  const KernelPolicy joined =
      with_range_rules(policy, range,
                       {rule_of("relu(f32[n]) where n=1..6"), rule_of("relu(f32[n]) where n=8..9", "simd"),
                        rule_of("relu(f32[n]) where n=11..12")});
  const std::vector<PolicyRule> expected = {rule_of("relu(f32[n]) where n=1..6"),
                                            rule_of("relu(f32[n]) where n=7..10", "simd"),
                                            rule_of("relu(f32[n]) where n=11..15"),
                                            other,
                                            any,
                                            named,
                                            policy.rules[6]};  // behind one that may hold its sizes
  EXPECT_EQ(std::vector<PolicyRule>(joined.rules.begin(), joined.rules.end()), expected);
}

TEST(RangeRule, ThoseThatWereTunedBeforeGoOnInNewOnesOfTheSameKernel) {
  const PolicyRule limited = rule_of("relu(f32[n]) threads=2 where n=9..16", "simd");
  const PolicyRule half = rule_of("relu(f16[n]) where n=1..16", "simd"), far = rule_of("relu(f32[n]) where n=30..40");
  KernelPolicy policy;
  policy.rules = {limited,
                  half,
                  far,
                  rule_of("relu(f32[rows]) where rows=21..24"),
                  rule_of("relu(f32[n]) where n=1..8", "simd"),
                  rule_of("relu(f32[n]) where n=25..28")};
  const auto rules =
      with_range_rules(policy, parse_problem_range("relu(f32[m]) where m=9..20"),
                       {rule_of("relu(f32[m]) where m=9..12", "simd"), rule_of("relu(f32[m]) where m=13..20")})
          .rules;
  const std::vector<PolicyRule> expected = {limited, rule_of("relu(f32[m]) where m=1..12", "simd"),
                                            rule_of("relu(f32[m]) where m=13..28"), half, far};
  EXPECT_EQ(std::vector<PolicyRule>(rules.begin(), rules.end()), expected);
}

TEST(RangeRule, OneThatANewRuleHoldsSizesOfDoesNotGoOnInAnother) {
  KernelPolicy policy;
  policy.rules = {rule_of("relu(f32[n]) where n=5..30", "simd")};
  const std::vector<PolicyRule> parts = {rule_of("relu(f32[n]) where n=1..10", "simd"),
                                         rule_of("relu(f32[n]) where n=11..20")};
  const auto rules = with_range_rules(policy, parse_problem_range("relu(f32[n]) where n=1..20"), parts).rules;
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0], parts[0]);
  EXPECT_EQ(rules[2], policy.rules[0]);
}

// A rule that is asked before an old part, and holds some of its sizes, is still asked before it.
TEST(RangeRule, PartsBehindARuleOfSomeOfTheirSizesAreNotJoined) {
  const ProblemRange range = parse_problem_range("relu(f32[n,8]) where n=1..20");
  KernelPolicy policy;
  policy.rules = {rule_of("relu(f32[4,k]) where k=1..20"), rule_of("relu(f32[n,8]) where n=1..9", "simd")};
  const KernelPolicy both = with_range_rules(policy, range, {rule_of("relu(f32[n,8]) where n=10..20", "simd")});
  ASSERT_EQ(both.rules.size(), 3u);
  EXPECT_EQ(both.rules[2], policy.rules[1]);
}

TEST(RangeRule, OneThatAsksForMoreReplacesNothing) {
  const ProblemRange range = parse_problem_range("relu(f32[n]) where n=1..64");
  KernelPolicy policy;
  policy.rules = {rule_of("relu(f32[n]) where n=1..64")};
  PolicyRule some = rule_of("relu(f32[n]) where n=1..64", "simd");
  some.when["inputs.0.shape.0"] = {{Comparison::multiple_of, {std::int64_t{8}}}};
  EXPECT_EQ(with_range_rules(policy, range, {some}).rules.size(), 2u);
}

}  // namespace
}  // namespace xpuruntime
