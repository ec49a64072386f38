#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "core/expect_error.h"
#include "xpuruntime/runtime/report.h"
#include "xpuruntime/select/kernel_selector.h"
#include "xpuruntime/select/range_rule.h"
#include "xpuruntime/select/validate_policy.h"

namespace xpuruntime {
namespace {

/// Takes the sizes that `takes` says, and computes the gradient of exp, for which the library has no kernel, after a
/// nap.
void add_kernel(Runtime& runtime, const char* name, bool (*takes)(std::int64_t),
                std::chrono::milliseconds nap = std::chrono::milliseconds(0)) {
  FunctionKernel kernel{.op = OpId::exp, .name = name};
  kernel.directions = Directions::backward;
  kernel.supports = [takes](const Problem& problem, const DeviceProfile&) {
    const std::int64_t size = problem.inputs[0].shape[0];
    return takes(size) ? Verdict::yes() : Verdict::no("not " + std::to_string(size));
  };
  kernel.run = [nap](const Problem& problem, const RunArguments& arguments) -> Status {
    const float* in = arguments.inputs[0]->as<const float>();
    const float* gradient = arguments.inputs[1]->as<const float>();
    float* out = arguments.outputs[0]->as<float>();
    for (std::int64_t i = 0; i < element_count(problem.inputs[0]); ++i) out[i] = gradient[i] * std::exp(in[i]);
    if (nap.count() > 0) std::this_thread::sleep_for(nap);
    return {};
  };
  kernel.version = "1";
  runtime.registry().register_kernel(make_kernel(std::move(kernel)));
}

constexpr const char* gradients = "exp:backward(f32[n], f32[n]) where n=1..50";

TuneOptions quick() {
  TuneOptions options;
  options.problem_budget_s = 0.002;
  options.isolate = false;
  return options;
}

class TuneRange : public testing::Test {
 protected:
  Runtime runtime_{{false, false, {}}};
};

TEST_F(TuneRange, AWideRangeIsStoppedWhileItsSizesAreStillAskedAbout) {
  static std::int64_t asked = 0;
  asked = 0;
  add_kernel(runtime_, "counting", [](std::int64_t) { return ++asked > 0; });
  const ProblemRange range = parse_problem_range("exp:backward(f32[n], f32[n]) where n=1..500000");
  TuneOptions options = quick();
  options.progress = [](const TuneProgress&) { return false; };
  const RangeResult cancelled = runtime_.tune(range, options);
  EXPECT_FALSE(cancelled.complete);
  EXPECT_TRUE(cancelled.parts.empty());
  EXPECT_NE(cancelled.summary().find("no choice yet for 500000"), std::string::npos) << cancelled.summary();
  options.progress = {};
  options.total_budget_s = 1e-6;
  const RangeResult ended = runtime_.tune(range, options);
  EXPECT_FALSE(ended.complete);
  EXPECT_NE(ended.summary().find("; cut short by total_budget_s"), std::string::npos) << ended.summary();
  EXPECT_EQ(ended.undecided, 500'000u);
  EXPECT_LT(asked, 10'000);
}

TEST_F(TuneRange, EveryProblemIsInOnePartWhoseKernelCanRunIt) {
  const ProblemRange range = parse_problem_range("matmul(f32[m,32], f32[32,32]) where m=1..64");
  std::size_t heard = 0;
  const RangeResult result = runtime_.tune(range, quick(), [&](const TuneResult&) { ++heard; });
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.problems, 64u);
  EXPECT_EQ(result.covered, 64u);
  EXPECT_LE(result.measured.size(), heard);  // some sizes are raced twice
  EXPECT_LE(heard, 32u);
  KernelPolicy policy = with_range_rules({}, result.range, range_rules(result));
  const ScopedPolicy scope(runtime_.dispatcher(), policy);
  for (std::size_t index = 0; index < range.count(); ++index) {
    const Decision decision = runtime_.dispatcher().explain(range.at(index));
    EXPECT_EQ(decision.level, Level::rule) << decision.because;
    EXPECT_NE(decision.because.find("matches at m=" + std::to_string(index + 1)), std::string::npos)
        << decision.because;
    EXPECT_EQ(decision.because.find("asks for"), std::string::npos) << decision.because;
    std::size_t holders = 0;
    for (const TunedPart& part : result.parts) {
      if (!part.range.contains(range.at(index))) continue;
      ++holders;
      EXPECT_EQ(part.kernel, decision.kernel);
    }
    EXPECT_EQ(holders, 1u);
  }
  // What was not checked is decided as without the policy.
  const Decision outside = runtime_.dispatcher().explain(parse_problem("matmul(f32[65,32], f32[32,32])"));
  EXPECT_EQ(outside.level, Level::strategy);
}

TEST_F(TuneRange, IsSplitWhereAKernelRefusesASize) {
  add_kernel(runtime_, "others", [](std::int64_t size) { return size != 20 && size != 40; });
  add_kernel(runtime_, "twenty", [](std::int64_t size) { return size == 20; });
  const RangeResult result = runtime_.tune(parse_problem_range(gradients), quick());
  std::vector<std::string> parts;
  for (const TunedPart& part : result.parts) {
    const SizeRange& sizes = part.range.names().front();
    parts.push_back(std::to_string(sizes.low) + ".." + std::to_string(sizes.high) + " " + part.kernel);
  }
  const std::vector<std::string> expected = {"1..19 others", "20..20 twenty", "21..39 others", "41..50 others"};
  EXPECT_EQ(parts, expected);
  EXPECT_EQ(result.covered, 49u);
  EXPECT_NE(result.summary().find("no kernel was found for 1"), std::string::npos) << result.summary();
}

TEST_F(TuneRange, ARuleWhoseKernelRefusesASizeIsFoundByValidation) {
  add_kernel(runtime_, "holed", [](std::int64_t size) { return size != 20; });
  KernelPolicy policy;
  policy.rules = {range_rule(parse_problem_range(gradients), "holed")};
  const auto findings = validate_policy(policy, runtime_.registry(), {});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_NE(findings[0].text.find("holed cannot run all of it: at n=20, not 20"), std::string::npos)
      << findings[0].text;
  // One that takes the layout only with copies runs all of it.
  policy.rules = {range_rule(parse_problem_range("softmax(f32[n,64]{128,1}) where n=2..8"), "simd")};
  EXPECT_TRUE(validate_policy(policy, runtime_.registry(), {}).empty());
  policy.rules = {range_rule(parse_problem_range(gradients), "holed")};
  // The next in order runs it, and the decision says why.
  add_kernel(runtime_, "rest", [](std::int64_t) { return true; });
  const ScopedPolicy scope(runtime_.dispatcher(), policy);
  const Decision decision = runtime_.dispatcher().explain(parse_problem("exp:backward(f32[20], f32[20])"));
  EXPECT_EQ(decision.kernel, "rest");
  EXPECT_NE(decision.because.find("asks for holed, but not 20"), std::string::npos) << decision.because;
}

TEST_F(TuneRange, LeavesSizesAloneThatThePolicyNames) {
  KernelPolicy policy;
  policy.rules = {range_rule(parse_problem_range("relu(f32[n]) where n=1..9"), "reference")};
  const ScopedPolicy scope(runtime_.dispatcher(), policy);
  const RangeResult result = runtime_.tune(parse_problem_range("relu(f32[n]) where n=1..20"), quick());
  EXPECT_EQ(result.named_by_policy, 9u);
  EXPECT_EQ(result.covered, 11u);
  EXPECT_FALSE(result.parts.front().range.contains(parse_problem("relu(f32[9])")));
  EXPECT_NE(result.summary().find("9 are left alone: rules decide them"), std::string::npos) << result.summary();
}

TEST_F(TuneRange, LeavesSizesAloneThatThePolicyPrefersOrForcesAKernelFor) {
  const ProblemRange range = parse_problem_range("relu(f32[n]) where n=1..20");
  for (const bool force : {false, true}) {
    KernelPolicy policy;
    force ? policy.force("relu", "reference") : policy.set("relu", "reference");
    const ScopedPolicy scope(runtime_.dispatcher(), policy);
    const RangeResult result = runtime_.tune(range, quick());
    EXPECT_TRUE(result.complete);
    EXPECT_EQ(result.named_by_policy, 20u);
    EXPECT_EQ(result.named_because, force ? "the policy forces reference" : "the policy prefers reference");
    EXPECT_TRUE(result.measured.empty());
    EXPECT_EQ(result.summary(), "0 parts from 0 of 20 problems measured; 20 are left alone: " + result.named_because);
  }
}

TEST_F(TuneRange, ANamedKernelThatRefusesASizeLeavesThatSizeOpen) {
  add_kernel(runtime_, "named", [](std::int64_t size) { return size <= 20; });
  add_kernel(runtime_, "open", [](std::int64_t) { return true; });
  KernelPolicy prefer, rule, coded;
  prefer.set("exp", "named");
  rule.rules = {range_rule(parse_problem_range(gradients), "named")};
  for (const KernelPolicy& policy : {prefer, rule, coded}) {
    if (policy == coded) {
      const auto selector = runtime_.registry().get_or_create_selector({});
      selector->register_rule(
          OpId::exp, [](const Problem&, const DeviceProfile&) { return true; }, "named");
    }
    const ScopedPolicy scope(runtime_.dispatcher(), policy);
    const RangeResult result = runtime_.tune(parse_problem_range(gradients), quick());
    EXPECT_EQ(result.named_by_policy, 20u) << result.summary();
    EXPECT_EQ(result.covered, 30u) << result.summary();
  }
}

TEST_F(TuneRange, DecidesWithoutALockThatIsInForce) {
  const auto nothing = std::make_shared<const KernelLock>();
  runtime_.dispatcher().set_lock({nothing});
  const RangeResult result = runtime_.tune(parse_problem_range("relu(f32[n]) where n=1..5"), quick());
  EXPECT_EQ(result.covered, 5u) << result.summary();
}

TEST_F(TuneRange, TakesThePrecisionAndTheLimitsOfThePolicy) {
  KernelPolicy policy;
  policy.set_precision("matmul", "bf16");
  policy.threads = 1;
  const ScopedPolicy scope(runtime_.dispatcher(), policy);
  const RangeResult result =
      runtime_.tune(parse_problem_range("matmul(f32[m,16], f32[16,16]) -> bf16[m,16] where m=1..4"), quick());
  EXPECT_EQ(to_string(result.range), "matmul(bf16[m,16], bf16[16,16]) -> bf16[m,16] @cpu:0 threads=1 where m=1..4");
  EXPECT_EQ(result.covered, 4u);
}

TEST_F(TuneRange, StopsWhenItIsToldAndSaysSo) {
  TuneOptions options = quick();
  int calls = 0;
  options.progress = [&](const TuneProgress&) { return ++calls < 20; };
  const RangeResult result = runtime_.tune(parse_problem_range("relu(f32[n]) where n=1..500"), options);
  EXPECT_FALSE(result.complete);
  EXPECT_NE(result.summary().find("stopped"), std::string::npos);
  KernelPolicy memory;
  memory.auto_strategy = Strategy::lowest_memory;
  const ScopedPolicy scope(runtime_.dispatcher(), memory);
  expect_invalid("asks for the least memory",
                 [&] { runtime_.tune(parse_problem_range("relu(f32[n]) where n=1..5"), quick()); });
}

TEST_F(TuneRange, SaysThatTheBudgetEndedIt) {
  TuneOptions options;
  options.isolate = false;
  options.total_budget_s = 0.03;
  const RangeResult result =
      runtime_.tune(parse_problem_range("matmul(f32[m,128], f32[128,128]) where m=1..512"), options);
  EXPECT_TRUE(result.cut_short) << result.summary();
  EXPECT_EQ(result.cut_by, "total_budget_s");
  EXPECT_NE(result.summary().find("; cut short by total_budget_s"), std::string::npos) << result.summary();
  EXPECT_NE(result.summary("--budget").find("; cut short by --budget"), std::string::npos);
  EXPECT_LE(result.guessed + result.measured.size(), 512u);
  for (const TuneResult& race : result.measured) {
    if (race.cut_short) {
      EXPECT_EQ(race.cut_by, "total_budget_s");
    }
  }
  const RangeResult whole = runtime_.tune(parse_problem_range("relu(f32[n]) where n=1..3"), quick());
  EXPECT_FALSE(whole.cut_short);
  EXPECT_EQ(whole.summary().find("cut short"), std::string::npos) << whole.summary();
}

TEST_F(TuneRange, SizesWhoseCallsAreLongerThanTheBudgetAreTimed) {
  for (const char* name : {"slow", "also_slow"}) {
    add_kernel(
        runtime_, name, [](std::int64_t size) { return size > 0; }, std::chrono::milliseconds(60));
  }
  const RangeResult result = runtime_.tune(parse_problem_range("exp:backward(f32[n], f32[n]) where n=1..2"), quick());
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.covered, 2u);
  ASSERT_EQ(result.measured.size(), 2u);
  for (const TuneResult& race : result.measured) {
    EXPECT_TRUE(race.cut_short);
    EXPECT_EQ(race.record(1).measurements.size(), 2u);
    EXPECT_EQ(race.record(1).choices.size(), 1u);
  }
}

// One kernel is slow up to 20 and the other above: at the change, races that are cut short are held again.
TEST_F(TuneRange, ASizeThatIsRacedTwiceIsListedOnce) {
  FunctionKernel kernel{.op = OpId::exp, .name = ""};
  kernel.directions = Directions::backward;
  kernel.version = "1";
  for (const bool slow_above : {false, true}) {
    kernel.name = slow_above ? "slow_above" : "slow_below";
    kernel.run = [slow_above](const Problem& problem, const RunArguments& arguments) -> Status {
      const std::int64_t size = problem.inputs[0].shape[0];
      const float* in = arguments.inputs[0]->as<const float>();
      const float* gradient = arguments.inputs[1]->as<const float>();
      for (std::int64_t i = 0; i < size; ++i) arguments.outputs[0]->as<float>()[i] = gradient[i] * std::exp(in[i]);
      if ((size > 20) == slow_above) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      return {};
    };
    runtime_.registry().register_kernel(make_kernel(kernel));
  }
  std::size_t heard = 0;
  const RangeResult result =
      runtime_.tune(parse_problem_range(gradients), quick(), [&](const TuneResult&) { ++heard; });
  std::set<std::string> sizes;
  for (const TuneResult& race : result.measured) sizes.insert(to_string(race.problem));
  EXPECT_GT(heard, sizes.size());
  EXPECT_EQ(result.measured.size(), sizes.size()) << result.summary();
}

TEST_F(TuneRange, IsNotCompleteWhereNothingWasMeasured) {
  TuneOptions options = quick();
  options.total_budget_s = 0.003;  // a quarter of it is too little to make one of these
  const RangeResult result =
      runtime_.tune(parse_problem_range("matmul(f32[m,768], f32[768,768]) where m=1..8"), options);
  EXPECT_TRUE(result.measured.empty());
  EXPECT_EQ(result.undecided, 8u);
  EXPECT_TRUE(result.cut_short);
  EXPECT_FALSE(result.complete);
}

// Three that go wrong after their first call: the budget is spent before the third is tried.
TEST_F(TuneRange, SizesWithoutAChoiceForWantOfTimeAreCountedAsSuch) {
  FunctionKernel kernel{.op = OpId::exp, .name = ""};
  kernel.directions = Directions::backward;
  for (const char* name : {"first", "second", "third"}) {
    kernel.name = name;
    const auto calls = std::make_shared<std::map<std::int64_t, int>>();
    kernel.run = [calls](const Problem& problem, const RunArguments& arguments) -> Status {
      const std::int64_t size = problem.inputs[0].shape[0];
      const auto off = static_cast<float>((*calls)[size]++);
      const float* in = arguments.inputs[0]->as<const float>();
      const float* gradient = arguments.inputs[1]->as<const float>();
      for (std::int64_t i = 0; i < size; ++i)
        arguments.outputs[0]->as<float>()[i] = gradient[i] * std::exp(in[i]) + off;
      return {};
    };
    runtime_.registry().register_kernel(make_kernel(kernel));
  }
  TuneOptions options = quick();
  options.problem_budget_s = 0;
  const auto tell = [](const TuneResult& race) {
    EXPECT_EQ(race.cut_by, "problem_budget_s");
    EXPECT_NE(race.because.find("was spent before the others; give more"), std::string::npos) << race.because;
  };
  const RangeResult result = runtime_.tune(parse_problem_range(gradients), options, tell);
  EXPECT_EQ(result.covered, 0u) << result.summary();
  EXPECT_EQ(result.undecided, 50u) << result.summary();
}

TEST_F(TuneRange, ProblemsThatWereNotBegunHaveAResultThatSaysWhy) {
  TuneOptions options = quick();
  options.total_budget_s = 0;
  const std::vector<Problem> problems = {parse_problem("relu(f32[8])"), parse_problem("relu(f32[9])")};
  const std::vector<ProblemRange> ranges = {parse_problem_range("relu(f32[n]) where n=1..5")};
  const TunedTogether tuned = runtime_.tune(problems, ranges, options);
  ASSERT_EQ(tuned.results.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const TuneResult& result = tuned.results[i];
    EXPECT_EQ(result.problem, problems[i]);
    EXPECT_FALSE(result.measured());
    EXPECT_TRUE(result.cut_short);
    EXPECT_EQ(result.cut_by, "total_budget_s");
    EXPECT_EQ(result.not_stored, "not tuned: total_budget_s is spent");
  }
  ASSERT_EQ(tuned.ranges.size(), 1u);
  EXPECT_FALSE(tuned.ranges[0].complete);
  EXPECT_EQ(tuned.ranges[0].undecided, 5u);
}

TEST_F(TuneRange, LeavesOutWhatDoesNotFitInMemoryOrTheBudget) {
  TuneOptions options = quick();
  options.total_budget_s = 0.3;
  const RangeResult result = runtime_.tune(parse_problem_range("relu(f32[n,n,n,n]) where n=1..1000"), options);
  EXPECT_GT(result.too_large, 0u);  // 1000^4 of them
  EXPECT_GT(result.undecided, 0u);
  EXPECT_EQ(result.covered + result.undecided + result.too_large, 1000u) << result.summary();
  EXPECT_TRUE(result.cut_short);
  EXPECT_FALSE(result.finished());
  for (const TuneResult& race : result.measured) EXPECT_TRUE(race.measured()) << to_string(race.problem);
  EXPECT_LT(result.spent_s, 10);  // half a minute where one is begun that takes as long
}

TEST_F(TuneRange, WhatARangeLeavesOfTheBudgetGoesToTheProblemsBesideIt) {
  // The share of one problem beside a range of 50 is far too little for a slow kernel, which the range does not need.
  FunctionKernel kernel{.op = OpId::exp, .name = "slow"};
  kernel.directions = Directions::backward;
  kernel.run = [](const Problem& problem, const RunArguments& arguments) -> Status {
    const float* in = arguments.inputs[0]->as<const float>();
    const float* gradient = arguments.inputs[1]->as<const float>();
    float* out = arguments.outputs[0]->as<float>();
    for (std::int64_t i = 0; i < element_count(problem.inputs[0]); ++i) out[i] = gradient[i] * std::exp(in[i]);
    if (problem.inputs[0].shape[0] < 100) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  };
  kernel.version = "1";
  for (const char* name : {"slow", "also_slow"}) {
    kernel.name = name;
    runtime_.registry().register_kernel(make_kernel(kernel));
  }
  TuneOptions options = quick();
  options.problem_budget_s = 0.4;
  options.total_budget_s = 2;
  options.range_points = 4;
  const std::vector<Problem> problems = {parse_problem("exp:backward(f32[100], f32[100])")};
  const std::vector<ProblemRange> ranges = {parse_problem_range(gradients)};
  std::size_t heard = 0;
  const TunedTogether tuned = runtime_.tune(problems, ranges, options, [&](const TuneResult&) { ++heard; });
  EXPECT_FALSE(tuned.cancelled);
  ASSERT_EQ(tuned.results.size(), 1u);
  ASSERT_EQ(tuned.ranges.size(), 1u);
  EXPECT_NE(tuned.results[0].cut_by, "total_budget_s") << tuned.results[0].because;
  EXPECT_FALSE(tuned.results[0].chosen.empty());
  EXPECT_GE(heard, 1u + tuned.ranges[0].measured.size());
}

TEST_F(TuneRange, CancelledTogetherEndsWithWhatHadItsTurn) {
  TuneOptions options = quick();
  options.progress = [](const TuneProgress&) { return false; };
  const std::vector<Problem> problems = {parse_problem("relu(f32[8])"), parse_problem("relu(f32[9])")};
  const std::vector<ProblemRange> ranges = {parse_problem_range("relu(f32[n]) where n=1..5")};
  const TunedTogether tuned = runtime_.tune(problems, ranges, options);
  EXPECT_TRUE(tuned.cancelled);
  EXPECT_LE(tuned.results.size(), 1u);
  EXPECT_TRUE(tuned.ranges.empty());
}

TEST_F(TuneRange, AReportShowsTheEndsOfEachPart) {
  KernelPolicy policy;
  policy.rules = {range_rule(parse_problem_range("relu(f32[n]) where n=5..9"), "reference")};
  const ScopedPolicy scope(runtime_.dispatcher(), policy);
  ReportOptions options;
  options.ranges = {parse_problem_range("relu(f32[n]) where n=1..20")};
  const std::string json = report_json(runtime_, options);
  for (const char* shown :
       {"relu(f32[1])", "relu(f32[4])", "relu(f32[5])", "relu(f32[9])", "relu(f32[10])", "relu(f32[20])"}) {
    EXPECT_NE(json.find("\"" + std::string(shown) + " @cpu:0\""), std::string::npos) << shown;
  }
  EXPECT_EQ(json.find("relu(f32[6])"), std::string::npos);
  options.ranges = {parse_problem_range("relu(f32[n]) where n=1..131073")};
  expect_invalid("at most 131072 are decided one by one", [&] { report_json(runtime_, options); });
}

}  // namespace
}  // namespace xpuruntime
