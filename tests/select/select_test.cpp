#include "xpuruntime/select/select.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "select/select_fixture.h"

namespace xpuruntime {
namespace {

using Select = testing::SelectFixture;

bool holds(const Problem&, const DeviceProfile&) { return true; }
bool fails(const Problem&, const DeviceProfile&) { return false; }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Select, TakesTheFirstOfTheTableWhereNobodySpeaks) {
  const Selection selection = select();
  expect_chosen(selection.decision, "a", Level::strategy);
  EXPECT_EQ(selection.kernel, a);
  EXPECT_EQ(selection.decision.because, "the first that can run it");
  EXPECT_EQ(selection.decision.problem, problem);
  ASSERT_EQ(selection.decision.candidates.size(), 3u);
  EXPECT_EQ(selection.decision.candidates[1].outcome, Outcome::passed);
}

TEST_F(Select, TakesTheNextWhereTheFirstRefusesAndRecordsWhy) {
  refuse(*a, "k is odd");
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_EQ(row(decision, "a")->outcome, Outcome::refused);
  EXPECT_EQ(row(decision, "a")->reason, "k is odd");
  EXPECT_EQ(row(decision, "a")->workspace_bytes, std::nullopt);
}

TEST_F(Select, PutsAReasonWhereAKernelGaveNone) {
  refuse(*a, "");
  EXPECT_FALSE(row(decide(), "a")->reason.empty());
  expect_chosen(decide(), "b", Level::strategy);
}

// Force.

TEST_F(Select, RunsAForcedKernelBeforeAllElse) {
  force("c");
  add_rule(holds, "b", "mine");
  measure("a", 1);
  policy.auto_strategy = Strategy::best_performance;
  expect_chosen(decide(), "c", Level::force);
}

TEST_F(Select, FailsWithTheReasonWhenTheForcedKernelRefuses) {
  force("c");
  refuse(*c, "k is odd");
  add_rule(holds, "b", "mine");
  const Selection selection = select();
  EXPECT_EQ(selection.kernel, nullptr);
  expect_chosen(selection.decision, "", Level::force);
  EXPECT_EQ(selection.decision.because, "the policy forces c, which cannot run: k is odd");
}

TEST_F(Select, FailsWithTheCataloguesReasonWhenTheForcedKernelIsNotHere) {
  force("cublasLt");
  const Selection selection = select();
  EXPECT_EQ(selection.kernel, nullptr);
  EXPECT_TRUE(contains(selection.decision.because, "an NVIDIA GPU")) << selection.decision.because;
  EXPECT_TRUE(contains(selection.decision.because, "this is cpu:0")) << selection.decision.because;
  ASSERT_NE(row(selection.decision, "cublasLt"), nullptr);
  EXPECT_EQ(row(selection.decision, "cublasLt")->outcome, Outcome::refused);
}

TEST_F(Select, ForcesOnlyTheOpThatThePolicyNames) {
  policy.preferences[OpId::softmax] = {{"c"}, true};
  expect_chosen(decide(), "a", Level::strategy);
}

// Prefer.

TEST_F(Select, TakesThePreferredKernelBeforeRulesAndStrategies) {
  prefer({"c"});
  add_rule(holds, "b", "mine");
  expect_chosen(decide(), "c", Level::prefer);
  EXPECT_EQ(decide().because, "the policy prefers c");
}

TEST_F(Select, GoesOnWhenThePreferredKernelRefusesAndSaysSo) {
  prefer({"c"});
  refuse(*c, "k is odd");
  const Decision decision = decide();
  expect_chosen(decision, "a", Level::strategy);
  EXPECT_TRUE(contains(decision.because, "c was preferred, but k is odd")) << decision.because;
  add_rule(holds, "b", "mine");
  expect_chosen(decide(), "b", Level::rule);
  EXPECT_TRUE(contains(decide().because, "c was preferred, but k is odd"));
}

TEST_F(Select, FollowsAnOrderOfPreferences) {
  prefer({"c", "b", "a"});
  refuse(*c, "k is odd");
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::prefer);
  EXPECT_TRUE(contains(decision.because, "its choice number 2"));
  EXPECT_TRUE(contains(decision.because, "k is odd"));
}

TEST_F(Select, RecordsAPreferredKernelThatIsNotHere) {
  prefer({"cublasLt", "b"});
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::prefer);
  ASSERT_NE(row(decision, "cublasLt"), nullptr);
  EXPECT_TRUE(contains(row(decision, "cublasLt")->reason, "an NVIDIA GPU"));
}

// User rules.

TEST_F(Select, TakesTheFirstUserRuleThatMatches) {
  add_rule(fails, "c", "never");
  add_rule(holds, "b", "mine");
  add_rule(holds, "c", "too late");
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::rule);
  EXPECT_EQ(decision.because, "mine matches");
}

TEST_F(Select, ShowsARuleTheProblemAndTheProfile) {
  profile.vendor = "acme";
  std::string seen;
  add_rule(
      [&](const Problem& asked, const DeviceProfile& device) {
        seen = to_string(asked) + " on " + device.vendor;
        return true;
      },
      "b", "mine");
  select();
  EXPECT_EQ(seen, to_string(problem) + " on acme");
}

TEST_F(Select, RecordsARuleThatThrowsAndTriesTheNext) {
  add_rule([](const Problem&, const DeviceProfile&) -> bool { throw std::runtime_error("no shape"); }, "b", "broken");
  add_rule([](const Problem&, const DeviceProfile&) -> bool { throw 42; }, "b", "worse");
  add_rule({}, "b", "empty");
  add_rule(holds, "c", "mine");
  const Decision decision = decide();
  expect_chosen(decision, "c", Level::rule);
  std::string reasons;
  for (const Candidate& candidate : decision.candidates) reasons += candidate.reason + "\n";
  EXPECT_TRUE(contains(reasons, "broken threw: no shape")) << reasons;
  EXPECT_TRUE(contains(reasons, "worse threw: an exception that is not a std::exception")) << reasons;
  EXPECT_TRUE(contains(reasons, "empty threw: ")) << reasons;
}

TEST_F(Select, GoesOnWhenARuleNamesAKernelThatRefuses) {
  refuse(*b, "k is odd");
  add_rule(holds, "b", "mine");
  add_rule(holds, "c", "other");
  const Decision decision = decide();
  expect_chosen(decision, "c", Level::rule);
  EXPECT_TRUE(contains(decision.because, "mine asks for b, but k is odd")) << decision.because;
}

TEST_F(Select, GoesOnWhenARuleNamesAKernelThatIsNotHere) {
  add_rule(holds, "cublasLt", "mine");
  const Decision decision = decide();
  expect_chosen(decision, "a", Level::strategy);
  EXPECT_TRUE(contains(decision.because, "mine asks for cublasLt, but it needs an NVIDIA GPU")) << decision.because;
}

TEST_F(Select, SaysOfAnotherDevicesKernelWhoseItIs) {
  const auto said = [&](const std::string& text) {
    problem = parse_problem(text);
    return decide().because;
  };
  prefer({"openblas"});
  const std::string of_opencl = said("matmul(f32[8,8], f32[8,8]) @opencl:0");
  EXPECT_TRUE(contains(of_opencl, "openblas was preferred, but it is a kernel of the CPU; this is opencl:0"))
      << of_opencl;
  const std::string here = said("matmul(f32[8,8], f32[8,8])");
  EXPECT_TRUE(contains(here, "openblas was preferred, but it is not registered; this is cpu:0")) << here;
  force("openblas");
  const std::string forced = said("matmul(f32[8,8], f32[8,8]) @opencl:0");
  EXPECT_TRUE(contains(forced, "it is a kernel of the CPU; this is opencl:0")) << forced;
}

// Checks that come before any level.

TEST_F(Select, TurnsWhatAKernelThrowsIntoItsRefusal) {
  a->verdict = []() -> Verdict { throw std::runtime_error("bad descriptor"); };
  b->verdict = []() -> Verdict { throw 42; };
  const Decision decision = decide();
  expect_chosen(decision, "c", Level::strategy);
  EXPECT_TRUE(contains(row(decision, "a")->reason, "bad descriptor"));
  EXPECT_TRUE(contains(row(decision, "b")->reason, "not a std::exception"));
}

TEST_F(Select, ObeysTheWorkspaceLimitToTheByte) {
  a->workspace = 101;
  b->workspace = 100;
  problem.limits.workspace_bytes = 100;
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_EQ(decision.workspace_bytes, 100u);
  EXPECT_EQ(row(decision, "a")->reason, "it needs 101 bytes of workspace, the limit is 100");
  EXPECT_EQ(row(decision, "a")->workspace_bytes, 101u);
}

TEST_F(Select, ObeysTheStricterOfThePolicysLimitsAndTheProblems) {
  a->workspace = 101;
  policy.workspace_limit_bytes = 100;
  expect_chosen(decide(), "b", Level::strategy);
  problem.limits.workspace_bytes = 200;
  expect_chosen(decide(), "b", Level::strategy);
  policy.workspace_limit_bytes = 300;
  expect_chosen(decide(), "a", Level::strategy);
  a->same_bits = false;
  policy.deterministic = true;
  expect_chosen(decide(), "b", Level::strategy);
}

TEST_F(Select, LeavesOutKernelsThatDifferFromRunToRunWhereThatIsAskedFor) {
  a->same_bits = false;
  expect_chosen(decide(), "a", Level::strategy);
  problem.limits.deterministic = true;
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_TRUE(contains(row(decision, "a")->reason, "deterministic"));
}

TEST_F(Select, ShowsKernelsThePolicysLimitsToo) {
  FunctionKernel mixes{.op = OpId::matmul, .name = "mixes"};
  mixes.supports = [](const Problem& asked, const DeviceProfile&) {
    return asked.limits.deterministic ? Verdict::no("it mixes windows") : Verdict::yes();
  };
  mixes.run = [](const Problem&, const RunArguments&) -> Status { return {}; };
  kernels = {make_kernel(std::move(mixes)), b};
  expect_chosen(decide(), "mixes", Level::strategy);
  policy.deterministic = true;
  expect_chosen(decide(), "b", Level::strategy);
  EXPECT_EQ(row(decide(), "mixes")->reason, "it mixes windows");
  EXPECT_EQ(decide().problem, problem);
}

TEST_F(Select, LeavesOutExcludedKernelsWithTheirReason) {
  exclusions = {{"a", "quarantined: the launch failed"}, {"b", ""}};
  const Decision decision = decide();
  expect_chosen(decision, "c", Level::strategy);
  EXPECT_EQ(row(decision, "a")->reason, "quarantined: the launch failed");
  EXPECT_EQ(row(decision, "b")->outcome, Outcome::refused);
  EXPECT_FALSE(row(decision, "b")->reason.empty());
}

TEST_F(Select, RefusesAForcedKernelThatIsExcluded) {
  force("a");
  exclusions = {{"a", "quarantined: the launch failed"}};
  EXPECT_EQ(select().kernel, nullptr);
  EXPECT_TRUE(contains(decide().because, "the launch failed"));
}

// Strategies.

TEST_F(Select, FirstSupportedAsksTheBuiltInRulesFirst) {
  builtin = {{OpId::matmul, DeviceType::cpu, fails, "a", "never"},
             {OpId::matmul, DeviceType::cpu, holds, "b", "small"}};
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_EQ(decision.because, "built-in rule: small");
}

TEST_F(Select, FirstSupportedPassesOverBuiltInRulesOfOtherOpsAndDevices) {
  builtin = {{OpId::softmax, DeviceType::cpu, holds, "b", "other op"},
             {OpId::matmul, DeviceType::opencl, holds, "c", "other device"}};
  expect_chosen(decide(), "a", Level::strategy);
}

TEST_F(Select, FirstSupportedPassesOverABuiltInRuleWhoseKernelRefusesOrIsNotHere) {
  builtin = {{OpId::matmul, DeviceType::cpu, holds, "elsewhere", "not here"},
             {OpId::matmul, DeviceType::cpu, holds, "b", "refused"},
             {OpId::matmul, DeviceType::cpu, holds, "c", "catch-all"}};
  refuse(*b, "k is odd");
  expect_chosen(decide(), "c", Level::strategy);
}

TEST_F(Select, FirstSupportedThenTakesTheRowsOfTheTableInOrder) {
  builtin = {{OpId::matmul, DeviceType::cpu, fails, "c", "never"}};
  refuse(*a, "k is odd");
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_EQ(decision.because, "the first that can run it");
}

TEST_F(Select, BestPerformanceTakesTheFastest) {
  policy.auto_strategy = Strategy::best_performance;
  measure("a", 30);
  measure("b", 10);
  measure("c", 20);
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_EQ(decision.because, "the fastest, 3 measured of 3 that can run");
  EXPECT_EQ(row(decision, "c")->time_us, 20);
}

TEST_F(Select, BestPerformanceKeepsTableOrderAtEqualTimes) {
  policy.auto_strategy = Strategy::best_performance;
  measure("a", 20);
  measure("b", 10);
  measure("c", 10);
  expect_chosen(decide(), "b", Level::strategy);
}

TEST_F(Select, BestPerformanceLetsATimeWinOnlyOverAKernelThatHasOne) {
  policy.auto_strategy = Strategy::best_performance;
  measure("c", 20);  // may well be the slowest of all
  const Decision unmeasured = decide();
  expect_chosen(unmeasured, "a", Level::strategy);
  EXPECT_EQ(unmeasured.because, "1 measured of 3 that can run, but not this one: the first that can run it");
  EXPECT_EQ(row(unmeasured, "a")->time_us, std::nullopt);
  measure("a", 30);
  const Decision measured = decide();
  expect_chosen(measured, "c", Level::strategy);
  EXPECT_EQ(measured.because, "the fastest, 2 measured of 3 that can run");
}

TEST_F(Select, BestPerformanceNeverTakesAFastKernelThatRefuses) {
  policy.auto_strategy = Strategy::best_performance;
  measure("a", 1);
  measure("b", 10);
  refuse(*a, "k is odd");
  expect_chosen(decide(), "b", Level::strategy);
  EXPECT_EQ(row(decide(), "a")->time_us, 1);
}

TEST_F(Select, BestPerformanceDecidesAnUnmeasuredProblemAsFirstSupportedAndMarksIt) {
  policy.auto_strategy = Strategy::best_performance;
  builtin = {{OpId::matmul, DeviceType::cpu, holds, "c", "small"}};
  const Decision decision = decide();
  expect_chosen(decision, "c", Level::strategy);
  EXPECT_EQ(decision.because, "no kernel was measured on this problem: built-in rule: small");
  times[parse_problem("matmul(f32[9,9], f32[9,9])")]["a"].add(1);
  EXPECT_EQ(decide(), decision);
}

TEST_F(Select, IgnoresMeasurementsUnderFirstSupported) {
  measure("b", 1);
  expect_chosen(decide(), "a", Level::strategy);
}

TEST_F(Select, LowestMemoryTakesTheLeastWorkspace) {
  policy.auto_strategy = Strategy::lowest_memory;
  a->workspace = 300;
  b->workspace = 100;
  c->workspace = 200;
  const Decision decision = decide();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_EQ(decision.because, "the least memory: 100 bytes of workspace");
}

TEST_F(Select, LowestMemoryBreaksTiesByTimeAndThenByTheTable) {
  policy.auto_strategy = Strategy::lowest_memory;
  expect_chosen(decide(), "a", Level::strategy);
  measure("a", 30);
  measure("b", 20);
  measure("c", 20);
  expect_chosen(decide(), "b", Level::strategy);
  b->workspace = 1;
  expect_chosen(decide(), "c", Level::strategy);
}

// Nothing left.

TEST_F(Select, ListsEveryReasonWhenNothingIsLeft) {
  refuse(*a, "k is odd");
  refuse(*b, "no bf16");
  exclusions = {{"c", "it failed before"}};
  const Selection selection = select();
  EXPECT_EQ(selection.kernel, nullptr);
  expect_chosen(selection.decision, "", Level::strategy);
  EXPECT_EQ(selection.decision.because,
            "no kernel for matmul on cpu:0 can run this; a: k is odd; b: no bf16; c: it failed before");
  for (const Strategy strategy : {Strategy::best_performance, Strategy::lowest_memory}) {
    policy.auto_strategy = strategy;
    EXPECT_EQ(select().kernel, nullptr);
  }
}

TEST_F(Select, SaysSoWhenThereIsNoKernelAtAll) {
  kernels.clear();
  EXPECT_EQ(decide().because, "no backend has a kernel for matmul on cpu:0");
  prefer({"cublasLt"});
  EXPECT_TRUE(contains(decide().because, "cublasLt was preferred, but it needs an NVIDIA GPU")) << decide().because;
}

TEST_F(Select, ShowsThePlanThatALockNames) {
  LockEntry entry{.problem = to_string(problem), .kernel = "b", .plan = "tile=2x2"};
  KernelLock lock;
  lock.add(entry, environment_of(profile));
  const LockUse use{std::make_shared<const KernelLock>(lock)};
  SelectionInputs inputs{problem, profile, kernels, policy, rules, builtin};
  EXPECT_EQ(xpuruntime::select(inputs).decision.plan, "");
  inputs.lock = &use;
  const Decision decision = xpuruntime::select(inputs).decision;
  expect_chosen(decision, "b", Level::lock);
  EXPECT_EQ(decision.plan, "tile=2x2");
}

TEST_F(Select, GivesTheSameAnswerEveryTime) {
  add_rule(fails, "c", "never");
  measure("b", 5);
  policy.auto_strategy = Strategy::best_performance;
  EXPECT_EQ(decide(), decide());
}

}  // namespace
}  // namespace xpuruntime
