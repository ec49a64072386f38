#include <gtest/gtest.h>

#include "tune/tuner_fixture.h"

namespace xpuruntime {
namespace {

using testing::problem;
using testing::relu;
using testing::TunerTest;

// What a first call loads or compiles is not its time, also where it is most of the budget.
TEST_F(TunerTest, AFirstCallThatSpendsTheBudgetIsNotAKernelsTime) {
  int calls = 0;
  add("loads", 50, [&](const RunArguments& arguments) {
    if (++calls == 1) now_us += 170'000;
    return relu(arguments);
  });
  add("slower", 90);
  for (const double budget_s : {0.15, 0.2, 0.3, 0.5}) {
    calls = 0;
    options.problem_budget_s = budget_s;
    const TuneResult result = tune("loads");
    EXPECT_EQ(result.chosen, "loads") << budget_s;
    EXPECT_NEAR(row(result, "loads").time_us.value_or(50), 50, 1) << budget_s;
    EXPECT_NEAR(row(result, "slower").time_us.value_or(90), 90, 1) << budget_s;
    for (const Measurement& kept : result.record(1).measurements) EXPECT_LT(kept.time_us, 1000) << kept.kernel;
  }
}

TEST_F(TunerTest, ObeysTheBudgetAndSaysSo) {
  add("a", 40000);
  add("b", 39000);
  reference_us = 60000;
  options.problem_budget_s = 0.3;
  const double before = now_us;
  const TuneResult result = tune("a");
  EXPECT_EQ(result.chosen, "a");
  EXPECT_TRUE(result.cut_short);
  EXPECT_NE(result.because.find("; the time budget of 300 ms ended the race before it was sure"), std::string::npos);
  EXPECT_EQ(result.cut_by, "problem_budget_s");
  EXPECT_LE(now_us - before, 0.3e6 + 4 * reference_us);  // both checks: the reference twice, the winner twice
  EXPECT_TRUE(result.record(1).choices.at(0).cut_short);
}

TEST_F(TunerTest, NamesTheTotalBudgetWhereItsShareEndedTheRace) {
  add("a", 40'000);
  add("b", 39'000);
  reference_us = 60'000;
  options.total_budget_s = 1.2;
  std::vector<std::string> cut_by;
  Tuner(registry, [this] { return now_us; })
      .tune_all({{problem, "a", {}}, {problem, "a", {}}, {problem, "a", {}}, {problem, "a", {}}}, options,
                [&](const TuneResult& result) { cut_by.push_back(result.cut_by); });
  EXPECT_EQ(cut_by.at(0), "total_budget_s");
}

TEST_F(TunerTest, LeavesTimeForTheWinnersSecondCheckInTheTotalBudget) {
  add("a", 40'000);
  add("b", 39'000);
  reference_us = 200'000;  // runs as the check, as a candidate and as the second check
  options.problem_budget_s = 10;
  options.total_budget_s = 1;
  TuneResult result;
  const double before = now_us;
  Tuner(registry, [this] { return now_us; }).tune_all({{problem, "a", {}}}, options, [&](const TuneResult& found) {
    result = found;
  });
  EXPECT_TRUE(result.measured());
  EXPECT_EQ(result.cut_by, "total_budget_s");
  EXPECT_NE(result.because.find("; the total time budget ended the race"), std::string::npos) << result.because;
  EXPECT_GT(now_us - before, 0.8e6);
  EXPECT_LE(now_us - before, 1e6 + 2 * 40'000);  // the calls that are checked
}

TEST_F(TunerTest, TriesTheIncumbentAloneWhereTheCheckSpendsTheTotalBudget) {
  add("b", 40);
  add("a", 50);
  reference_us = 2e6;
  options.total_budget_s = 3;
  TuneResult result;
  const double before = now_us;
  Tuner(registry, [this] { return now_us; }).tune_all({{problem, "a", {}}}, options, [&](const TuneResult& found) {
    result = found;
  });
  EXPECT_EQ(result.chosen, "a");
  EXPECT_EQ(row(result, "a").time_us, 50);
  EXPECT_EQ(result.cut_by, "total_budget_s");
  for (const char* other : {"b", "reference"}) {
    EXPECT_EQ(row(result, other).reason, "not tried: the time budget was spent");
  }
  EXPECT_LE(now_us - before, 2e6 + 1000);  // a second check would take as long again
}

TEST_F(TunerTest, OneThatTakesTheWholeBudgetLeavesTheOthersTheirShortestRace) {
  int calls = 0;
  add("slow", 50, [&](const RunArguments& arguments) {
    now_us += calls == 0 || calls > 1000 ? 900'000 : 50;
    ++calls;
    return relu(arguments);
  });
  add("fast", 40);
  options.total_budget_s = 0.2;
  std::vector<TuneResult> results;
  const auto keep = [&](const TuneResult& result) { results.push_back(result); };
  const std::vector<TuneTask> tasks(3, {problem, "slow", {}});
  EXPECT_TRUE(Tuner(registry, [this] { return now_us; }).tune_all(tasks, options, keep));
  ASSERT_EQ(results.size(), 3u);
  for (const TuneResult& result : results) EXPECT_TRUE(result.measured()) << result.because;
  EXPECT_EQ(results[2].cut_by, "total_budget_s");
  // Where they are slow too, that ends after as long again.
  reference_us = 900'000;
  results.clear();
  EXPECT_FALSE(Tuner(registry, [this] { return now_us; }).tune_all(tasks, options, keep));
  EXPECT_EQ(results.size(), 2u);
  options.total_budget_s = 0;
  results.clear();
  EXPECT_FALSE(Tuner(registry, [this] { return now_us; }).tune_all(tasks, options, keep));
  EXPECT_TRUE(results.empty());
}

TEST_F(TunerTest, TriesTheIncumbentAloneWhereOneCallSpendsTheBudget) {
  add("a", 5e6);
  add("b", 4e6);
  const double before = now_us;
  const TuneResult result = tune("b");
  EXPECT_EQ(result.chosen, "b");
  EXPECT_TRUE(result.cut_short);
  EXPECT_EQ(row(result, "a").reason, "not tried: the time budget was spent");
  EXPECT_EQ(now_us - before, 4e6 + reference_us);  // the check
}

// First calls alone spend the budget, and are no times.
TEST_F(TunerTest, ComparesTwoWhereACallTakesMostOfTheBudget) {
  add("c", 180'000);
  add("b", 60'000);
  add("a", 150'000);
  reference_us = 160'000;
  for (const double budget_s : {0.5, 0.2, 0.0}) {
    options.problem_budget_s = budget_s;
    const double before = now_us;
    const TuneResult result = tune("a");
    EXPECT_EQ(result.chosen, "b") << budget_s;
    EXPECT_TRUE(result.measured());
    EXPECT_TRUE(result.cut_short);
    EXPECT_EQ(row(result, "a").time_us, 150'000);
    EXPECT_EQ(row(result, "b").time_us, 60'000);
    EXPECT_FALSE(row(result, "c").time_us);
    EXPECT_NE(row(result, "c").reason.find("the time budget was spent"), std::string::npos);
    EXPECT_EQ(result.record(1).choices.at(0).kernel, "b");
    EXPECT_LE(result.measuring_s, budget_s + 0.6);
    EXPECT_LE(now_us - before, 1.8e6);  // the checks too
  }
}

TEST_F(TunerTest, TimesTheIncumbentWhereOthersAreFarSlower) {
  add("a", 800'000);
  reference_us = 1'500'000;
  const TuneResult result = tune("a");
  EXPECT_EQ(result.chosen, "a");
  EXPECT_EQ(row(result, "a").time_us, 800'000);
  EXPECT_EQ(result.record(1).choices.size(), 1u);
}

}  // namespace
}  // namespace xpuruntime
