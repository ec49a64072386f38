#include "xpuruntime/select/lock.h"

#include "dispatch/fixture.h"

namespace xpuruntime {
namespace {

class Locked : public DispatchTest {
 protected:
  LockUse lock_to(const std::string& kernel, const std::string& plan = {}, LockMode mode = LockMode::strict) {
    LockEntry entry;
    entry.problem = "relu(f32[8]) @cpu:0";
    entry.kernel = kernel;
    entry.plan = plan;
    entry.kernel_version = "1";
    KernelLock lock;
    lock.add(entry, here);
    return {std::make_shared<const KernelLock>(lock), mode};
  }
  Environment here = environment_of(runtime.devices().profile({}));
  Relu relu;
};

TEST_F(Locked, RunsTheLockedKernelWhateverThePolicyForces) {
  auto first = add_kernel("first");
  auto second = add_kernel("second");
  KernelPolicy policy;
  policy.force("relu", "first");
  dispatcher().set_policy(policy);
  dispatcher().set_lock(lock_to("second"));
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(second->load(), 1);
  EXPECT_EQ(first->load(), 0);
  EXPECT_EQ(dispatcher().decide(relu.call()).level, Level::lock);

  dispatcher().set_policy({});  // a new policy does not lift the lock
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(second->load(), 2);
  EXPECT_EQ(dispatcher().decide(relu.call()).level, Level::lock);

  dispatcher().set_lock({});
  EXPECT_EQ(dispatcher().decide(relu.call()).level, Level::strategy);
}

TEST_F(Locked, AProblemThatTheLockDoesNotHoldIsAnErrorThatNamesItAndNothingRuns) {
  auto kernel = add_kernel("only");
  dispatcher().set_lock(lock_to("only"));
  const Relu other(9);
  const std::string text = error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(other.call()); });
  EXPECT_HAS(
      text,
      "relu(f32[9]) @cpu:0: the lock has no entry for it; the nearest is relu(f32[8]) @cpu:0, which differs in the "
      "shape of input 0 (f32[8] there, f32[9] here); record it too (xrt lock record, record_lock)");
  EXPECT_EQ(kernel->load(), 0);
}

TEST_F(Locked, AKernelThatFailsIsNotReplacedByAnother) {
  auto good = add_kernel("good");
  add_kernel("bad", [] { return Status(ErrorCode::device_error, "it fell over"); });
  dispatcher().set_lock(lock_to("bad"));
  EXPECT_HAS(error_text(ErrorCode::device_error, [&] { dispatcher().dispatch(relu.call()); }), "it fell over");
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); }), "the lock says bad");
  EXPECT_EQ(good->load(), 0);
}

TEST_F(Locked, AnotherPlanIsABreachThatShowsBoth) {
  auto kernel = add_kernel("only");
  dispatcher().set_lock(lock_to("only", "tile=4"));
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); }),
             "the lock holds the plan 'tile=4' of only, which plans '' here");
  EXPECT_EQ(kernel->load(), 0);
}

TEST_F(Locked, OtherSoftwareIsCheckedBeforeItsFirstRunAndNotAgain) {
  auto kernel = add_kernel("only");
  here.versions["driver"] = "an older one";
  dispatcher().set_lock(lock_to("only"));
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); }), "revalidate");
  EXPECT_EQ(kernel->load(), 0);

  int asked = 0;
  dispatcher().set_revalidator([&](const Problem& problem, const std::string& name, const std::string&) -> std::string {
    EXPECT_EQ(to_string(problem), "relu(f32[8]) @cpu:0");
    EXPECT_EQ(name, "only");
    ++asked;
    return {};
  });
  dispatcher().set_lock(lock_to("only", {}, LockMode::revalidate));
  dispatcher().dispatch(relu.call());
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(kernel->load(), 2);

  dispatcher().set_revalidator(
      [](const Problem&, const std::string&, const std::string&) { return "its numbers are wrong now"; });
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); }),
             "its numbers are wrong now");
  EXPECT_EQ(kernel->load(), 2);
}

TEST_F(Locked, AKernelRegisteredAnewIsNotReplayedForTheOneItReplaces) {
  add_kernel("mine");
  dispatcher().set_lock(lock_to("mine"));
  dispatcher().dispatch(relu.call());
  for (const char* version : {"2", ""}) {
    EXPECT_TRUE(runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "mine"));
    auto other = add_kernel("mine", {}, 0, version);
    const std::string text = error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); });
    EXPECT_HAS(text, *version ? "mine is version 1 in the lock, version 2 here" : "mine has no version here");
    EXPECT_EQ(other->load(), 0);
  }
  EXPECT_TRUE(runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "mine"));
  auto same = add_kernel("mine");
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(same->load(), 1);
}

TEST_F(Locked, APrecisionThatTheLockDoesNotHoldIsMissingAndNoOtherIsTaken) {
  add_kernel("only");
  KernelPolicy policy;
  policy.set_precision("relu", "bf16");
  dispatcher().set_policy(policy);
  dispatcher().set_lock(lock_to("only"));  // in f32
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); }),
             "relu(bf16[8]) @cpu:0: the lock has no entry for it; the nearest is relu(f32[8]) @cpu:0");
}

TEST_F(Locked, ACastThatTheLockDoesNotHoldIsNamed) {
  add_kernel("only");
  KernelPolicy policy;
  policy.set_precision("relu", "bf16");
  dispatcher().set_policy(policy);
  LockEntry entry;
  entry.problem = "relu(bf16[8]) @cpu:0";
  entry.kernel = "only";
  entry.kernel_version = "1";
  KernelLock lock;
  lock.add(entry, here);
  dispatcher().set_lock({std::make_shared<const KernelLock>(lock)});
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); }),
             "its cast cast(f32[8]; dtype=bf16) @cpu:0 cannot run: the lock has no entry for it");
}

TEST_F(Locked, AScopedLockHoldsForItsBlockAndThread) {
  auto first = add_kernel("first");
  auto second = add_kernel("second");
  {
    const ScopedLock scope(dispatcher(), lock_to("first"));
    dispatcher().dispatch(relu.call());
    KernelPolicy policy;
    policy.force("relu", "second");
    const ScopedPolicy inner(dispatcher(), policy);  // layered over the lock, not instead of it
    dispatcher().dispatch(relu.call());
    EXPECT_EQ(first->load(), 2);
    const ScopedLock none(dispatcher(), {});
    dispatcher().dispatch(relu.call());
    EXPECT_EQ(second->load(), 1);
  }
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(second->load(), 2);  // the newest kernel comes first
}

class Measured : public DispatchTest {
 protected:
  Measured() { policy.auto_strategy = Strategy::best_performance; }

  /// What a race would have found about any problem.
  static std::shared_ptr<const Measurements> found(const std::string& kernel) {
    class Snapshot final : public StoreSnapshot {
     public:
      explicit Snapshot(std::string kernel) : kernel_(std::move(kernel)) {}
      std::optional<Entry> find(std::string_view) const override {
        TunedChoice choice;
        choice.kernel = kernel_;
        choice.kernel_version = "1";
        choice.because = "it was written down";
        return Entry{{}, choice, {}, {}};
      }
      std::size_t size() const override { return 1; }

     private:
      std::string kernel_;
    };
    return std::make_shared<const Measurements>(
        Measurements::Snapshots{{Device{}, std::make_shared<const Snapshot>(kernel)}});
  }
  KernelPolicy policy;
  Relu relu;
};

TEST_F(Measured, ChoicesComeFromTheSourceAndAreFrozenInTheScope) {
  auto first = add_kernel("first");
  auto second = add_kernel("second");
  std::string now = "first";
  dispatcher().set_measured_source([&] { return found(now); });
  dispatcher().set_policy(policy);
  dispatcher().dispatch(relu.call());
  now = "second";
  dispatcher().dispatch(Relu(9).call());  // a new problem in the old scope
  EXPECT_EQ(first->load(), 2);
  dispatcher().set_policy(policy);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(second->load(), 1);
}

TEST_F(Measured, ASourceWithNothingLeavesItToTheStatistics) {
  add_kernel("first");
  add_kernel("second");
  dispatcher().set_measured_source([] { return nullptr; });
  const Problem problem = parse_problem("relu(f32[8])");
  dispatcher().statistics().record(problem, "first", 1, "1");
  dispatcher().statistics().record(problem, "second", 2, "1");
  dispatcher().set_policy(policy);
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "first");
}

TEST_F(Measured, AnUnmeasuredProblemIsTunedOnceBeforeItRuns) {
  auto first = add_kernel("first");
  auto second = add_kernel("second");
  std::vector<std::string> tuned;
  dispatcher().set_tuner([&](const Problem& problem, const std::string& incumbent) {
    tuned.push_back(to_string(problem) + " from " + incumbent);
    return found("first");
  });
  dispatcher().dispatch(relu.call());  // no strategy that looks at times
  EXPECT_TRUE(tuned.empty());
  dispatcher().set_policy(policy);
  dispatcher().dispatch(relu.call());
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(tuned, std::vector<std::string>{"relu(f32[8]) @cpu:0 from second"});
  EXPECT_EQ(first->load(), 2);
  EXPECT_EQ(second->load(), 1);
  dispatcher().set_tuner({});
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(second->load(), 2);
}

TEST_F(Measured, AKernelThatComesLaterIsRacedToo) {
  add_kernel("first");
  int races = 0;
  dispatcher().set_tuner([&](const Problem&, const std::string&) {
    ++races;
    return found("first");
  });
  dispatcher().set_policy(policy);
  dispatcher().dispatch(relu.call());
  add_kernel("second");
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(races, 2);
}

TEST_F(Measured, ARaceThatAnotherVersionWonIsRunAgain) {
  dispatcher().set_measured_source([] { return found("first"); });  // version 1
  int races = 0;
  dispatcher().set_tuner([&](const Problem&, const std::string&) {
    ++races;
    return TuneAnswer();
  });
  dispatcher().set_policy(policy);
  add_kernel("first");
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(races, 0);
  runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "first");
  add_kernel("first", {}, 0, "2");
  EXPECT_HAS(dispatcher().decide(relu.call()).because, "tuning chose another version of first");
  EXPECT_EQ(races, 1);
}

TEST_F(Measured, TimesOfAKernelAreNotThoseOfAnotherUnderItsName) {
  for (const char* version : {"", "1"}) {
    auto first = add_kernel("mine", {}, 0, version);
    dispatcher().enable_logging();
    dispatcher().dispatch(relu.call());
    dispatcher().set_policy(policy);  // what was logged is frozen
    const auto time_of_mine = [&] {
      const Decision decision = dispatcher().decide(relu.call());
      return std::find_if(decision.candidates.begin(), decision.candidates.end(),
                          [](const Candidate& candidate) { return candidate.kernel == "mine"; })
          ->time_us;
    };
    EXPECT_TRUE(time_of_mine());
    runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "mine");
    add_kernel("mine", {}, 0, *version ? "2" : "");
    EXPECT_FALSE(time_of_mine());
    dispatcher().set_policy(policy);
    EXPECT_FALSE(time_of_mine());
    runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "mine");
  }
}

TEST_F(Measured, WhatAPolicyNamesIsNotTuned) {
  add_kernel("first");
  policy.set("relu", "first");
  dispatcher().set_policy(policy);
  dispatcher().set_tuner([&](const Problem&, const std::string&) -> std::shared_ptr<const Measurements> {
    ADD_FAILURE() << "tuned";
    return nullptr;
  });
  dispatcher().dispatch(relu.call());
}

}  // namespace
}  // namespace xpuruntime
