#include "select/rule_implication.h"

#include <gtest/gtest.h>

#include "select/random_rules.h"

namespace xpuruntime {
namespace {

using testing::RandomRules;
using testing::rule_of;

bool hides(const std::string& earlier, const std::string& later) { return implies(rule_of(later), rule_of(earlier)); }

TEST(Implication, KnowsThatARuleWithoutConditionsHidesAll) {
  EXPECT_TRUE(hides("{}", "{}"));
  EXPECT_TRUE(hides("{}", R"({"batch": 1})"));
  EXPECT_FALSE(hides(R"({"batch": {">=": 0}})", "{}"));  // sound, if not clever
  EXPECT_FALSE(implies(rule_of("{}", "relu"), rule_of("{}")));
}

TEST(Implication, ComparesRangesSetsAndExclusions) {
  EXPECT_TRUE(hides(R"({"batch": {"<=": 16}})", R"({"batch": {"<": 17}})"));
  EXPECT_FALSE(hides(R"({"batch": {"<=": 16}})", R"({"batch": {"<=": 17}})"));
  EXPECT_TRUE(hides(R"({"batch": {">": 3}})", R"({"batch": {">=": 4}, "groups": 1})"));
  EXPECT_TRUE(hides(R"({"batch": [1, 2, 3]})", R"({"batch": {">=": 1, "<": 4}})"));
  EXPECT_FALSE(hides(R"({"batch": [1, 2]})", R"({"batch": {">=": 1, "<": 4}})"));
  EXPECT_TRUE(hides(R"({"batch": {"!=": 5}})", R"({"batch": {">": 100000}})"));
  EXPECT_FALSE(hides(R"({"batch": {"!=": 500000}})", R"({"batch": {">": 100000}})"));
  EXPECT_TRUE(hides(R"({"batch": {"multiple_of": 4}})", R"({"batch": {"multiple_of": 8}})"));
  EXPECT_FALSE(hides(R"({"batch": {"multiple_of": 8}})", R"({"batch": {"multiple_of": 4}})"));
  EXPECT_TRUE(hides(R"({"batch": {"multiple_of": 8}})", R"({"batch": [8, 16]})"));
  EXPECT_TRUE(hides(R"({"dtype": {"!=": "f32"}})", R"({"dtype": ["f16", "bf16"]})"));
  EXPECT_TRUE(hides(R"({"direction": ["forward", "backward"]})", R"({"direction": {"!=": "forward"}})"));
  EXPECT_TRUE(hides(R"({"deterministic": {"!=": false}})", R"({"deterministic": true})"));
  EXPECT_TRUE(hides(R"({"device.name": {"contains": "H2"}})", R"({"device.name": {"contains": "H200"}})"));
  EXPECT_FALSE(hides(R"({"device.name": {"contains": "H200"}})", R"({"device.name": {"contains": "H2"}})"));
  EXPECT_TRUE(hides(R"({"device.name": {"!=": "A100"}})", R"({"device.name": {"contains": "H2"}})"));
  EXPECT_TRUE(
      hides(R"({"device.cpu_features": {"contains": "a"}})", R"({"device.cpu_features": {"contains": ["b", "a"]}})"));
  EXPECT_TRUE(hides(R"({"device.compute_capability": {">=": 8}})", R"({"device.compute_capability": {">": 8}})"));
  EXPECT_FALSE(hides(R"({"device.compute_capability": {">": 8}})", R"({"device.compute_capability": {">=": 8}})"));
  EXPECT_TRUE(hides(R"({"kernel": {"<=": 3}})", R"({"kernel": [[1, 1], [3, 2]]})"));
  EXPECT_TRUE(hides(R"({"kernel": 3})", R"({"kernel": [3, 3]})"));
  EXPECT_TRUE(hides(R"({"kernel": [3, 3]})", R"({"kernel": 3})"));
  EXPECT_FALSE(hides(R"({"kernel": {"!=": 3}})", R"({"kernel": {"<=": 4}})"));
  EXPECT_TRUE(hides(R"({"inputs.0.shape": {"<=": 9}})", R"({"inputs.0.shape": {"<=": 8}})"));
  EXPECT_TRUE(hides(R"({"inputs.0.shape": 3})", R"({"inputs.0.shape": 3})"));
}

TEST(Contradiction, IsFoundInRangesSetsAndWords) {
  for (const char* when :
       {R"({"batch": {"<": 3, ">": 5}})", R"({"batch": {"<": 4, ">": 3}})", R"({"batch": {"==": 3, "!=": 3}})",
        R"({"batch": {"in": [1, 2], ">": 2}})", R"({"batch": {"==": 3, "multiple_of": 2}})",
        R"({"batch": {">": 9223372036854775807}})", R"({"batch": {"<": -9223372036854775808}})",
        R"({"dtype": {"in": ["f32"], "not_in": ["f32"]}})", R"({"deterministic": {"==": true, "!=": true}})",
        R"({"device.compute_capability": {">": 8, "<=": 8}})", R"({"kernel": {"<": 3, ">": 3}})",
        R"({"device.name": {"==": "a", "contains": "b"}})", R"({"batch": {">=": 9, "<=": 15, "multiple_of": 8}})"}) {
    EXPECT_NE(contradiction_in(rule_of(when)), "") << when;
  }
  for (const char* when :
       {"{}", R"({"batch": {"<": 5, ">": 3}})", R"({"batch": {">=": 9223372036854775807}})",
        R"({"batch": {">=": -9223372036854775808, "<=": 9223372036854775807}})",
        R"({"device.compute_capability": {">=": 8, "<=": 8}})", R"({"inputs.0.shape": {"<": 3, ">": 3}})"}) {
    EXPECT_EQ(contradiction_in(rule_of(when)), "") << when;
  }
}

TEST(Implication, IsNeverContradictedByAProblem) {
  RandomRules random(7);
  std::vector<std::pair<Problem, DeviceProfile>> calls;
  for (int i = 0; i < 300; ++i) calls.emplace_back(random.problem(), random.profile());
  int hidden = 0, impossible = 0, matched = 0;
  for (int i = 0; i < 4000; ++i) {
    const PolicyRule narrow = random.rule(), wide = random.rule();
    const bool implied = implies(narrow, wide);
    const bool never = !contradiction_in(narrow).empty();
    hidden += implied;
    impossible += never;
    if (!implied && !never) continue;
    for (const auto& [problem, profile] : calls) {
      if (!narrow.matches(problem, profile)) continue;
      ++matched;
      ASSERT_FALSE(never) << KernelPolicy{.rules = {narrow}}.to_json();
      ASSERT_TRUE(wide.matches(problem, profile)) << KernelPolicy{.rules = {narrow, wide}}.to_json();
    }
  }
  EXPECT_GT(hidden, 100);
  EXPECT_GT(impossible, 100);
  EXPECT_GT(matched, 1000);
}

}  // namespace
}  // namespace xpuruntime
