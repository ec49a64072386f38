#include "select/rule_index.h"

#include <gtest/gtest.h>

#include "select/random_rules.h"
#include "xpuruntime/select/exact_rule.h"

namespace xpuruntime {
namespace {

std::vector<std::size_t> matching(const RuleIndex& index, const Problem& problem, const DeviceProfile& profile) {
  std::vector<std::size_t> found;
  index.any_match(problem, profile, [&](std::size_t rule, const std::string& thrown) {
    EXPECT_EQ(thrown, "");
    found.push_back(rule);
    return false;
  });
  return found;
}

/// How many rules are looked at for a problem.
std::size_t looked_at(const RuleIndex& index, const Problem& problem) {
  std::size_t count = 0;
  index.any_candidate(
      problem.op, [&](const std::string&, const Term& term) { return std::optional(term.read(problem, {})); },
      [&](std::size_t) { return ++count, false; });
  return count;
}

TEST(RuleIndex, FindsTheRulesThatMatchInTheirOrder) {
  testing::RandomRules random(3);
  std::vector<PolicyRule> rules;
  for (int i = 0; i < 500; ++i) rules.push_back(random.rule());
  const RuleIndex index(rules);
  std::size_t all = 0;
  for (int i = 0; i < 300; ++i) {
    const Problem problem = random.problem();
    const DeviceProfile profile = random.profile();
    std::vector<std::size_t> expected;
    for (std::size_t rule = 0; rule < rules.size(); ++rule) {
      if (rules[rule].matches(problem, profile)) expected.push_back(rule);
    }
    ASSERT_EQ(matching(index, problem, profile), expected) << to_string(problem);
    all += expected.size();
  }
  EXPECT_GT(all, 1000u);
}

TEST(RuleIndex, StopsWhereTheFirstIsTaken) {
  const std::vector<PolicyRule> rules(3, testing::rule_of("{}", "matmul"));
  std::vector<std::size_t> asked;
  EXPECT_TRUE(RuleIndex(rules).any_match(parse_problem("matmul(f32[2,2], f32[2,2])"), {},
                                         [&](std::size_t rule, const std::string&) {
                                           asked.push_back(rule);
                                           return rule == 1;
                                         }));
  EXPECT_EQ(asked, (std::vector<std::size_t>{0, 1}));
}

TEST(RuleIndex, WhoStopsAtTheFirstPaysForNoOther) {
  // None asks for equality: all are candidates. To list them each time would take minutes.
  const std::vector<PolicyRule> rules(50000, testing::rule_of(R"({"m": {">": 3}})", "matmul"));
  const RuleIndex index(rules);
  const Problem problem = parse_problem("matmul(f32[4,4], f32[4,4])");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    std::size_t first = 1;
    ASSERT_TRUE(index.any_match(problem, {}, [&](std::size_t rule, const std::string&) {
      first = rule;
      return true;
    }));
    ASSERT_EQ(first, 0u);
  }
}

TEST(RuleIndex, LooksAtFewRulesHoweverManyThereAre) {
  for (const int count : {1000, 8000}) {
    std::vector<PolicyRule> rules;
    for (int i = 1; i <= count; ++i) {
      const std::string n = std::to_string(i);
      rules.push_back(exact_rule(parse_problem("matmul(f32[" + n + ",2], f32[2,3])"), "reference"));
      rules.push_back(exact_rule(parse_problem("relu(f32[" + n + "])"), "reference"));
      rules.push_back(testing::rule_of(R"({"m": )" + n + R"(, "n": {">": 1}})", "matmul"));
    }
    const RuleIndex index(rules);
    EXPECT_EQ(index.groups(OpId::matmul), 2u);
    EXPECT_EQ(looked_at(index, parse_problem("matmul(f32[7,2], f32[2,3])")), 2u);
    EXPECT_EQ(looked_at(index, parse_problem("relu(f32[7])")), 1u);
    EXPECT_EQ(looked_at(index, parse_problem("relu(f32[9999])")), 0u);
    EXPECT_EQ(looked_at(index, parse_problem("gelu(f32[7])")), 0u);
  }
}

TEST(RuleIndex, AsksARuleThatNobodyCheckedAndTellsWhatItThrew) {
  PolicyRule unknown = testing::rule_of("{}", "matmul"), spelled = unknown;
  unknown.when["no_such_key"] = {{Comparison::equal, {RuleValue{true}}}};
  spelled.when["dtype"] = {{Comparison::equal, {RuleValue{std::string("float32")}}}};
  const std::vector<PolicyRule> rules = {unknown, spelled};
  std::vector<std::string> texts;
  RuleIndex(rules).any_match(parse_problem("matmul(f32[2,2], f32[2,2])"), {},
                             [&](std::size_t, const std::string& thrown) {
                               texts.push_back(thrown);
                               return false;
                             });
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_NE(texts[0].find("no_such_key"), std::string::npos);
  EXPECT_EQ(texts[1], "");
}

}  // namespace
}  // namespace xpuruntime
