#include "select/select_fixture.h"

namespace xpuruntime::testing {
namespace {

/// Rules of the policy, as the levels of a choice see them. Kernels are a, b and c.
class PolicyRuleSelect : public SelectFixture {
 protected:
  void add_policy_rule(std::vector<std::string> use, const std::string& name = "", std::int64_t m = 8) {
    PolicyRule rule = {OpId::matmul, {}, std::move(use), name};
    rule.when["m"] = {{Comparison::at_most, {RuleValue{m}}}};
    policy.rules.push_back(std::move(rule));
  }
};

TEST_F(PolicyRuleSelect, ChoosesTheKernelOfTheFirstRuleThatMatches) {
  add_policy_rule({"a"}, "too small", 7);
  add_policy_rule({"b"}, "mine");
  add_policy_rule({"c"}, "later");
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::rule);
  EXPECT_EQ(decision.because, "rule \"mine\" of the policy matches");
}

TEST_F(PolicyRuleSelect, NumbersRulesWithoutANameFromOne) {
  add_policy_rule({"a"}, "", 7);
  add_policy_rule({"b"});
  EXPECT_EQ(decide().because, "rule 2 of the policy matches");
}

TEST_F(PolicyRuleSelect, LeavesRulesOfOtherOpsAlone) {
  policy.rules = {{OpId::relu, {}, {"b"}, ""}};
  expect_chosen(decide(), "a", Level::strategy);
}

TEST_F(PolicyRuleSelect, StandsBelowPreferencesAndAboveRulesOfTheCode) {
  add_rule([](const Problem&, const DeviceProfile&) { return true; }, "c", "code");
  expect_chosen(decide(), "c", Level::rule);
  add_policy_rule({"b"});
  expect_chosen(decide(), "b", Level::rule);
  prefer({"a"});
  expect_chosen(decide(), "a", Level::prefer);
  force("c");
  expect_chosen(decide(), "c", Level::force);
}

TEST_F(PolicyRuleSelect, IsNotAskedWhereAForcedKernelIsRefused) {
  add_policy_rule({"b"});
  force("a");
  refuse(*a, "no");
  expect_chosen(decide(), "", Level::force);
}

TEST_F(PolicyRuleSelect, RecordsKernelsThatCannotRunAndTakesTheNext) {
  refuse(*b, "too odd");
  add_policy_rule({"b", "cublasLt"}, "first");
  add_policy_rule({"b", "c"}, "second");
  const Decision decision = decide();
  expect_chosen(decision, "c", Level::rule);
  EXPECT_EQ(decision.because.rfind("rule \"second\" of the policy matches; rule \"first\" of the policy asks for b, "
                                   "but too odd; rule \"first\" of the policy asks for cublasLt, but it needs",
                                   0),
            0u)
      << decision.because;
  ASSERT_NE(row(decision, "cublasLt"), nullptr);
  EXPECT_EQ(row(decision, "cublasLt")->outcome, Outcome::refused);
}

TEST_F(PolicyRuleSelect, FallsToTheStrategyWhereNothingOfItCanRun) {
  refuse(*b, "too odd");
  add_policy_rule({"b"});
  const Decision decision = decide();
  expect_chosen(decision, "a", Level::strategy);
  EXPECT_NE(decision.because.find("rule 1 of the policy asks for b, but too odd"), std::string::npos);
}

TEST_F(PolicyRuleSelect, SeesTheLimitsOfThePolicy) {
  PolicyRule rule = {OpId::matmul, {}, {"b"}, ""};
  rule.when["deterministic"] = {{Comparison::equal, {RuleValue{true}}}};
  policy.rules = {rule};
  expect_chosen(decide(), "a", Level::strategy);
  policy.deterministic = true;
  expect_chosen(decide(), "b", Level::rule);
}

TEST_F(PolicyRuleSelect, TellsOfARuleThatCannotBeRight) {
  PolicyRule rule = {OpId::matmul, {}, {"b"}, "odd"};
  rule.when["nothing"] = {{Comparison::equal, {RuleValue{true}}}};
  policy.rules = {rule};
  const Decision decision = decide();
  expect_chosen(decision, "a", Level::strategy);
  EXPECT_NE(decision.because.find("rule \"odd\" of the policy threw: "), std::string::npos) << decision.because;
}

}  // namespace
}  // namespace xpuruntime::testing
