#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "select/made_up_kernels.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime::testing {

/// Three kernels, a, b and c, and everything else a choice is made from, open to the test.
class SelectFixture : public ::testing::Test {
 protected:
  SelectFixture() {
    problem = parse_problem("matmul(f32[8,8], f32[8,8])");
    kernels = {a, b, c};
  }

  Selection select() const {
    const Measurements measurements(times);
    return xpuruntime::select(
        {problem, profile, kernels, policy, rules, builtin, times.empty() ? nullptr : &measurements, exclusions});
  }
  Decision decide() const { return select().decision; }

  void refuse(MadeUpKernel& kernel, const std::string& reason) {
    kernel.verdict = [reason] { return Verdict::no(reason); };
  }
  void prefer(std::vector<std::string> names) { policy.preferences[OpId::matmul] = {std::move(names), false}; }
  void force(const std::string& name) { policy.preferences[OpId::matmul] = {{name}, true}; }
  void add_rule(Condition condition, const std::string& kernel, const std::string& name) {
    rules.push_back({OpId::matmul, std::move(condition), kernel, 0, name, rules.size() + 1});
  }
  void measure(const std::string& kernel, double time_us) { times[problem][kernel].add(time_us); }
  static const Candidate* row(const Decision& decision, const std::string& kernel) {
    const auto found = std::find_if(decision.candidates.begin(), decision.candidates.end(),
                                    [&](const Candidate& candidate) { return candidate.kernel == kernel; });
    return found == decision.candidates.end() ? nullptr : &*found;
  }
  static void expect_chosen(const Decision& decision, const std::string& kernel, Level level) {
    EXPECT_EQ(decision.kernel, kernel) << decision.to_text();
    EXPECT_EQ(decision.level, level) << decision.to_text();
    EXPECT_EQ(std::count_if(decision.candidates.begin(), decision.candidates.end(),
                            [](const Candidate& candidate) { return candidate.outcome == Outcome::chosen; }),
              kernel.empty() ? 0 : 1);
  }

  std::shared_ptr<MadeUpKernel> a = std::make_shared<MadeUpKernel>("a");
  std::shared_ptr<MadeUpKernel> b = std::make_shared<MadeUpKernel>("b");
  std::shared_ptr<MadeUpKernel> c = std::make_shared<MadeUpKernel>("c");
  Problem problem;
  DeviceProfile profile;
  std::vector<std::shared_ptr<const Kernel>> kernels;
  KernelPolicy policy;
  std::vector<Rule> rules;
  std::vector<BuiltinRule> builtin;
  Measurements::Times times;
  std::vector<Exclusion> exclusions;
};

}  // namespace xpuruntime::testing
