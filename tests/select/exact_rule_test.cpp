#include "xpuruntime/select/exact_rule.h"

#include <gtest/gtest.h>

namespace xpuruntime {
namespace {

// Each differs from the first in one thing.
std::vector<Problem> variants() {
  std::vector<Problem> problems;
  for (const char* text : {
           "matmul(f32[64,32], f32[32,64])",
           "matmul(f32[64,33], f32[33,64])",
           "matmul(f32[64,32], f32[32,64]) @opencl:0",
           "matmul(bf16[64,32], bf16[32,64])",
           "matmul(f32[64,32]{1,64}, f32[32,64])",
           "matmul(f32[64,32]{64,1}, f32[32,64])",
           "matmul(f32[64,32], f32[64,32]; transpose_b=true)",
           "matmul(f32[64,32], f32[32,64]) -> bf16[64,64]",
           "matmul(f32[64,32], f32[32,64]) @cpu:0 deterministic",
           "matmul:backward(f32[64,32], f32[32,64], f32[64,64])",
       }) {
    problems.push_back(parse_problem(text));
  }
  return problems;
}

TEST(ExactRule, MatchesItsOwnProblemAndNoOther) {
  const std::vector<Problem> problems = variants();
  for (std::size_t rule = 0; rule < problems.size(); ++rule) {
    const PolicyRule exact = exact_rule(problems[rule], "reference");
    exact.check();
    for (std::size_t i = 0; i < problems.size(); ++i) {
      DeviceProfile profile;
      profile.type = problems[i].device.type;
      EXPECT_EQ(exact.matches(problems[i], profile), i == rule) << exact.name << " and " << to_string(problems[i]);
    }
  }
}

TEST(ExactRule, TheOneWithMoreLimitsIsAskedFirstAndEqualOnesAreReplaced) {
  const Problem free = parse_problem("relu(f32[8])"), bound = parse_problem("relu(f32[8]) @cpu:0 threads=1");
  KernelPolicy policy = with_exact_rules({}, {exact_rule(free, "simd"), exact_rule(bound, "reference")});
  ASSERT_EQ(policy.rules.size(), 2u);
  EXPECT_EQ(policy.rules.front().use.front(), "reference");
  policy = with_exact_rules(policy, {exact_rule(free, "reference")});
  ASSERT_EQ(policy.rules.size(), 2u);
  EXPECT_EQ(policy.rules.front().name, to_string(free));
  EXPECT_EQ(policy.rules.front().use.front(), "reference");
  EXPECT_EQ(KernelPolicy::from_json(policy.to_json()), policy);
}

// To hold each old rule against each new one is not done within the time that a test has.
TEST(ExactRule, ReplacesManyByMany) {
  std::vector<PolicyRule> rules;
  for (int i = 1; i <= 50000; ++i) {
    rules.push_back(exact_rule(parse_problem("relu(f32[" + std::to_string(i) + "])"), "simd"));
  }
  const KernelPolicy policy = with_exact_rules({}, rules);
  EXPECT_EQ(with_exact_rules(policy, rules).rules.size(), rules.size());
}

}  // namespace
}  // namespace xpuruntime
