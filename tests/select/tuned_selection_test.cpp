#include <gtest/gtest.h>

#include "select/select_fixture.h"
#include "xpuruntime/select/lock.h"

// What a store says of a problem, and the choice.

namespace xpuruntime {
namespace {
/// A store's part for one problem, written down by hand.
class WrittenSnapshot final : public StoreSnapshot {
 public:
  std::optional<Entry> find(std::string_view problem) const override {
    return problem == "matmul(f32[8,8], f32[8,8]) @cpu:0" ? std::optional(entry) : std::nullopt;
  }
  std::size_t size() const override { return 1; }
  Entry entry = {};
};

class TunedSelection : public testing::SelectFixture {
 protected:
  TunedSelection() { policy.auto_strategy = Strategy::best_performance; }
  Decision decide_tuned() {
    const Measurements measurements(Measurements::Snapshots{{Device{}, snapshot}});
    return xpuruntime::select({problem, profile, kernels, policy, rules, builtin, &measurements, exclusions}).decision;
  }
  void add(const std::string& kernel, double time_us) {
    Measurement measurement;
    measurement.kernel = kernel;
    measurement.time_us = time_us;
    snapshot->entry.measurements.push_back(measurement);
  }
  void choose(const std::string& kernel, const std::string& because) {
    TunedChoice choice;
    choice.kernel = kernel;
    choice.because = because;
    snapshot->entry.choice = choice;
  }
  std::shared_ptr<WrittenSnapshot> snapshot = std::make_shared<WrittenSnapshot>();
};

TEST_F(TunedSelection, TakesWhatTheRaceChoseEvenIfAnotherTimeIsLessByNoise) {
  add("a", 10.0);
  add("b", 9.9);
  choose("a", "b gains no more than noise");
  const Decision decision = decide_tuned();
  expect_chosen(decision, "a", Level::strategy);
  EXPECT_EQ(decision.because, "tuned: b gains no more than noise");
  EXPECT_EQ(row(decision, "b")->time_us, 9.9);
}

TEST_F(TunedSelection, ExplicitPreferencesBeatTheRace) {
  choose("a", "fastest");
  prefer({"c"});
  expect_chosen(decide_tuned(), "c", Level::prefer);
}

TEST_F(TunedSelection, AWinnerThatCannotRunAnyMoreIsReplacedByTheFastestAndNamed) {
  add("a", 1);
  add("b", 2);
  add("c", 3);
  choose("a", "fastest");
  refuse(*a, "it is gone");
  const Decision decision = decide_tuned();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_NE(decision.because.find("tuning chose a, but it is gone"), std::string::npos) << decision.because;
}

TEST_F(TunedSelection, AChoiceOfOtherSoftwareIsNotUsedAndSaysWhy) {
  add("c", 1);
  choose("c", "fastest");
  snapshot->entry.stale = "driver 1 there, 2 here";
  const Decision decision = decide_tuned();
  expect_chosen(decision, "a", Level::strategy);
  EXPECT_NE(decision.because.find("driver 1 there, 2 here"), std::string::npos) << decision.because;
}

TEST_F(TunedSelection, WhatAnotherVersionOfAKernelDidSaysNothingOfThisOne) {
  add("c", 1);
  choose("c", "fastest");
  snapshot->entry.quarantine.push_back({"", "a", "it crashed with signal 11", 0});
  c->code = a->code = "2";  // the snapshot is about the library's own
  const Decision decision = decide_tuned();
  expect_chosen(decision, "a", Level::strategy);
  EXPECT_FALSE(row(decision, "c")->time_us);
  EXPECT_NE(decision.because.find("tuning chose another version of c"), std::string::npos) << decision.because;
}

TEST_F(TunedSelection, AChoiceSaysWhichKernelsHaveAnotherVersionThanTheOneThatRaced) {
  add("a", 5);
  add("c", 1);
  choose("c", "faster than a");
  EXPECT_EQ(decide_tuned().because, "tuned: faster than a");
  a->code = "2";
  const Decision decision = decide_tuned();
  expect_chosen(decision, "c", Level::strategy);
  EXPECT_EQ(decision.because, "tuned: faster than a; a as it is registered now was not measured");
}

TEST_F(TunedSelection, AQuarantinedKernelIsRefusedWithItsReason) {
  snapshot->entry.quarantine.push_back({"", "a", "it crashed with signal 11", 0});
  const Decision decision = decide_tuned();
  expect_chosen(decision, "b", Level::strategy);
  EXPECT_EQ(row(decision, "a")->reason, "quarantined when it was tuned: it crashed with signal 11");
}

// A lock's kernel that may not run: what the store says is lifted in the store, what this process says by itself.
TEST_F(TunedSelection, ALockNamesWhatEndsAQuarantine) {
  Decision locked;
  locked.problem = parse_problem("matmul(f32[8,8], f32[8,8])");
  locked.kernel = "a";
  KernelLock lock;
  lock.add(locked, environment_of(profile));
  const Measurements measurements(Measurements::Snapshots{{Device{}, snapshot}});
  const LockUse use{std::make_shared<const KernelLock>(lock)};
  const auto because = [&] {
    return xpuruntime::select(
               {problem, profile, kernels, policy, rules, builtin, &measurements, exclusions, true, &use})
        .decision.because;
  };
  const std::string in_process = "clear_quarantine", in_store = "(xrt store prune --op matmul --kernel a)";
  const auto expect_says = [&](bool process, bool store) {
    EXPECT_EQ(because().find(in_process) != std::string::npos, process) << because();
    EXPECT_EQ(because().find(in_store) != std::string::npos, store) << because();
  };
  expect_says(false, false);
  snapshot->entry.quarantine.push_back({"", "a", "it crashed with signal 11", 0});
  expect_says(false, true);
  exclusions = {{"a", "quarantined: the launch failed"}};
  expect_says(true, true);
  snapshot->entry.quarantine.clear();
  expect_says(true, false);
}

}  // namespace
}  // namespace xpuruntime
