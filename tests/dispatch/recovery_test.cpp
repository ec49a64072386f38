#include <latch>
#include <thread>

#include "dispatch/fixture.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

class Recovery : public DispatchTest {
 protected:
  static Status broken() { return Status(ErrorCode::device_error, "the device fell off the bus"); }

  /// A kernel of relu that runs well until `breaks` is set.
  std::shared_ptr<std::atomic<int>> add_breaking() {
    return add_kernel("breaking", [this] { return breaks ? broken() : Status(); });
  }
  void fail_in_another_thread() {
    breaks = true;
    std::thread([&] { dispatcher().dispatch(relu.call()); }).join();
  }

  std::atomic<bool> breaks{false};
  Relu relu;
};

TEST_F(Recovery, AFailedLaunchIsQuarantinedAndTheNextKernelRuns) {
  auto good = add_kernel("good");
  auto bad = add_kernel("bad", broken);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(bad->load(), 1);
  EXPECT_EQ(good->load(), 1);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(bad->load(), 1);  // not tried again
  EXPECT_EQ(good->load(), 2);

  const Decision& decision = dispatcher().decide(relu.call());
  EXPECT_EQ(decision.kernel, "good");
  EXPECT_EQ(decision.candidates.front().outcome, Outcome::refused);
  EXPECT_HAS(decision.candidates.front().reason, "quarantined: its launch failed: the device fell off the bus");
  ASSERT_EQ(dispatcher().quarantined().size(), 1u);
  EXPECT_EQ(dispatcher().quarantined().front().kernel, "bad");

  const Relu other(9);  // another problem is another plan
  dispatcher().dispatch(other.call());
  EXPECT_EQ(bad->load(), 2);

  dispatcher().clear_quarantine();
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(bad->load(), 3);
}

TEST_F(Recovery, AForcedKernelThatFailsIsAnErrorAndNothingElseRuns) {
  auto good = add_kernel("good");
  add_kernel("bad", broken);
  KernelPolicy policy;
  policy.force("relu", "bad");
  dispatcher().set_policy(policy);
  EXPECT_HAS(error_text(ErrorCode::device_error, [&] { dispatcher().dispatch(relu.call()); }),
             "the device fell off the bus");
  EXPECT_HAS(error_text(ErrorCode::not_supported, [&] { dispatcher().dispatch(relu.call()); }), "quarantined");
  EXPECT_EQ(good->load(), 0);
}

TEST_F(Recovery, AWrongValueInTheCallersTensorsIsAnErrorAndTheKernelStaysInUse) {
  auto good = add_kernel("good");
  bool wrong = true;
  auto strict = add_kernel("strict", [&] {
    return wrong ? Status(ErrorCode::invalid_argument, "index 9 at 3 is past the 5 rows; mend the indices") : Status();
  });
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().dispatch(relu.call()); }),
             "relu: index 9 at 3 is past the 5 rows; mend the indices");
  EXPECT_EQ(good->load(), 0);
  EXPECT_TRUE(dispatcher().quarantined().empty());
  wrong = false;
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(strict->load(), 2);
}

TEST_F(Recovery, WhereEveryKernelLackedMemoryThatIsTheError) {
  const OpId op = register_op({.name = "recovery_test", .infer = op_info(OpId::relu).infer});
  const auto add = [&](const std::string& name, const Status& status) {
    FunctionKernel kernel;
    kernel.op = op;
    kernel.name = name;
    kernel.run = [status](const Problem&, const RunArguments&) { return status; };
    runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  };
  const auto dispatch = [&] { dispatcher().dispatch({op, relu.inputs, relu.outputs}); };
  for (const char* name : {"one", "two"}) add(name, {ErrorCode::out_of_memory, "the device is full"});
  const std::string text = error_text(ErrorCode::out_of_memory, dispatch);
  EXPECT_HAS(text, "no kernel for recovery_test on cpu:0 can run this");
  EXPECT_HAS(text, "passed over in this call: the device is full");
  add("bad", broken());
  EXPECT_HAS(error_text(ErrorCode::not_supported, dispatch), "fell off the bus");
}

TEST_F(Recovery, NoOtherKernelIsTriedWhenTheOutputOverwritesTheInput) {
  auto good = add_kernel("good");
  add_kernel("bad", broken);
  EXPECT_HAS(error_text(ErrorCode::device_error,
                        [&] {
                          dispatcher().dispatch({OpId::relu, relu.inputs, relu.inputs});
                        }),
             "overwrites an input");
  EXPECT_EQ(good->load(), 0);
}

TEST_F(Recovery, AKernelThatThrowsWhileItRunsIsAFailedLaunch) {
  auto good = add_kernel("good");
  add_kernel("thrower", []() -> Status { throw 42; });
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(good->load(), 1);
}

TEST_F(Recovery, AKernelThatCannotBePreparedIsPassedOver) {
  struct Unprepared : Kernel {
    OpId op() const override { return OpId::relu; }
    std::string_view name() const override { return "unprepared"; }
    DeviceType device_type() const override { return DeviceType::cpu; }
    Verdict accepts(const Problem&, const DeviceProfile&) const override { return Verdict::yes(); }
    std::unique_ptr<const Plan> make_plan(const Problem&, const PrepareContext&, std::string_view) const override {
      throw std::runtime_error("the compiler gave up");
    }
  };
  runtime.registry().register_kernel(std::make_shared<Unprepared>());
  const Decision& decision = dispatcher().decide(relu.call());
  EXPECT_EQ(decision.kernel, "simd");
  EXPECT_HAS(decision.candidates.front().reason, "the compiler gave up");
}

TEST_F(Recovery, FailuresAreWorkedThroughInOrderUntilOneRuns) {
  add_kernel("bad", broken);
  add_kernel("worse", broken);
  KernelPolicy policy;
  policy.set_order("relu", {"bad", "worse"});
  dispatcher().set_policy(policy);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
  EXPECT_EQ(dispatcher().quarantined().size(), 2u);
}

TEST_F(Recovery, WhatTakesOverIsDecidedOnce) {
  add_kernel("bad", broken);
  std::vector<std::string> told;
  dispatcher().set_decision_hook([&](const auto& decision) { told.push_back(decision->kernel); });
  for (int i = 0; i < 3; ++i) dispatcher().dispatch(relu.call());
  dispatcher().set_decision_hook({});
  EXPECT_EQ(told, (std::vector<std::string>{"bad", "simd"}));
}

TEST_F(Recovery, WhatATunerQuarantinesIsNotChosenThoughItFoundNoOther) {
  add_kernel("good");
  add_kernel("bad");
  dispatcher().set_tuner([&](const Problem& problem, const std::string& incumbent) {
    for (const auto& kernel : runtime.registry().kernels(OpId::relu, DeviceType::cpu)) {
      if (kernel->name() == "bad") dispatcher().quarantine(problem, kernel, "it crashed");
    }
    return TuneAnswer("no time was left after " + incumbent);
  });
  KernelPolicy policy;
  policy.auto_strategy = Strategy::best_performance;
  dispatcher().set_policy(policy);
  const Decision decision = dispatcher().explain(parse_problem("relu(f32[8])"));
  EXPECT_EQ(decision.kernel, "good");
  EXPECT_HAS(decision.because, "not tuned: no time was left after bad");
  EXPECT_EQ(decision.candidates.front().reason, "quarantined: it crashed");
}

TEST_F(Recovery, LackOfWorkspaceIsPassedOverForOneCallOnly) {
  auto hungry = add_kernel("hungry", {}, std::uint64_t{1} << 60);
  dispatcher().enable_logging();
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(hungry->load(), 0);
  const auto entries = dispatcher().logs();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.back().selected_kernel(), "simd");
  EXPECT_HAS(entries.back().decision->candidates.front().reason, "passed over in this call");
  EXPECT_TRUE(dispatcher().quarantined().empty());  // memory may be there the next time
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "hungry");
}

TEST_F(Recovery, ALaunchThatLacksMemoryIsTriedOnceMoreWithoutWhatThePoolKeeps) {
  WorkspacePool& pool = runtime.devices().workspace(Device{});
  const auto lacks_memory = [&] {
    return pool.stats().bytes_cached == 0 ? Status() : Status(ErrorCode::out_of_memory, "the device is full");
  };
  const auto tight = add_kernel("tight", lacks_memory);
  pool.acquire(1 << 20, {});  // given back at once, and kept
  ASSERT_NE(pool.stats().bytes_cached, 0u);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(tight->load(), 2);
  EXPECT_EQ(pool.stats().bytes_cached, 0u);
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "tight");
}

TEST_F(Recovery, AKernelRegisteredAnewUnderAnOldNameStartsAfresh) {
  add_kernel("flaky", broken);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
  runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "flaky");
  auto repaired = add_kernel("flaky");
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(repaired->load(), 1);
  EXPECT_TRUE(dispatcher().quarantined().empty());
}

TEST_F(Recovery, AFailureCountsUnderEveryLimit) {
  auto good = add_kernel("good");
  auto bad = add_kernel("bad", broken);
  dispatcher().dispatch(relu.call());
  KernelPolicy policy;
  policy.threads = 1;
  const ScopedPolicy scope(dispatcher(), policy);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(bad->load(), 1);
  EXPECT_EQ(good->load(), 2);
}

TEST_F(Recovery, OneFailureLeavesOtherDecisionsWarm) {
  int asked = 0;
  selector().register_rule(
      OpId::softmax, [&](const Problem&, const DeviceProfile&) { return ++asked < 0; }, "reference");
  add_kernel("bad", broken);
  const Relu other;
  const Call softmax{OpId::softmax, other.inputs, other.outputs};
  dispatcher().dispatch(softmax);
  dispatcher().dispatch(relu.call());
  dispatcher().dispatch(softmax);
  EXPECT_EQ(asked, 1);
}

TEST_F(Recovery, AThreadThatDecidedBeforeDecidesAgain) {
  auto calls = add_breaking();
  std::latch decided(1), failed(1);
  std::string kernel;
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) dispatcher().dispatch(relu.call());
    decided.count_down();
    failed.wait();
    const Relu own;
    dispatcher().dispatch(own.call());
    kernel = dispatcher().decide(own.call()).kernel;
  });
  decided.wait();
  fail_in_another_thread();
  failed.count_down();
  other.join();
  EXPECT_EQ(calls->load(), 4);
  EXPECT_EQ(kernel, "simd");
}

TEST_F(Recovery, OtherProblemsOfTheKernelAreNotDecidedAgain) {
  add_breaking();
  const Relu other(9);
  dispatcher().dispatch(relu.call());
  dispatcher().dispatch(other.call());
  std::vector<std::string> told;
  dispatcher().set_decision_hook([&](const auto& decision) { told.push_back(decision->kernel); });
  breaks = true;
  dispatcher().dispatch(relu.call());
  breaks = false;
  dispatcher().dispatch(other.call());
  dispatcher().set_decision_hook({});
  EXPECT_EQ(told, std::vector<std::string>{"simd"});
  EXPECT_EQ(dispatcher().decide(other.call()).kernel, "breaking");
}

TEST_F(Recovery, AnotherScopeThatDecidedBeforeDecidesAgain) {
  auto calls = add_breaking();
  dispatcher().dispatch(relu.call());
  {
    KernelPolicy policy;
    policy.set_order("relu", {"breaking"});
    const ScopedPolicy scope(dispatcher(), policy);
    breaks = true;
    dispatcher().dispatch(relu.call());
  }
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(calls->load(), 2);
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
}

TEST_F(Recovery, CallsInsideAKernelThatIsRunningDecideAgain) {
  auto calls = add_breaking();
  const Relu outer(16);
  dispatcher().dispatch(relu.call());
  FunctionKernel calling;
  calling.op = OpId::softmax;
  calling.name = "calling";
  calling.run = [&](const Problem&, const RunArguments&) {
    dispatcher().dispatch(relu.call());
    fail_in_another_thread();
    dispatcher().dispatch(relu.call());
    return Status();
  };
  runtime.registry().register_kernel(make_kernel(std::move(calling)));
  dispatcher().dispatch({OpId::softmax, outer.inputs, outer.outputs});
  EXPECT_EQ(calls->load(), 3);
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
  EXPECT_EQ(dispatcher().decide({OpId::softmax, outer.inputs, outer.outputs}).kernel, "calling");
}

TEST_F(Recovery, AKernelThatFailsInItsOwnInnerCallGoesOnAndIsNotTriedAgain) {
  int depth = 0;
  auto calls = add_kernel("calls_itself", [&] {
    if (++depth == 3) return broken();
    dispatcher().dispatch(relu.call());
    return Status();
  });
  dispatcher().dispatch(relu.call());
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(calls->load(), 3);
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
}

TEST_F(Recovery, TheQuarantineIsBounded) {
  add_kernel("bad", broken);
  for (std::int64_t n = 1; n < 6000; ++n) {
    const Tensor in(relu.in.data(), make_spec(DataType::float32, {n, 0}));
    const Tensor out(relu.out.data(), make_spec(DataType::float32, {n, 0}));
    const std::array<const Tensor*, 1> inputs = {&in};
    const std::array<const Tensor*, 1> outputs = {&out};
    dispatcher().dispatch({OpId::relu, inputs, outputs});
  }
  EXPECT_LE(dispatcher().quarantined().size(), 4096u);
}

}  // namespace
}  // namespace xpuruntime
