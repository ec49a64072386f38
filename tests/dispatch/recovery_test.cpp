#include "dispatch/fixture.h"

namespace xpuruntime {
namespace {

class Recovery : public DispatchTest {
 protected:
  static Status broken() { return Status(ErrorCode::device_error, "the device fell off the bus"); }
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

TEST_F(Recovery, AKernelRegisteredAnewUnderAnOldNameStartsAfresh) {
  add_kernel("flaky", broken);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "simd");
  runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "flaky");
  auto repaired = add_kernel("flaky");
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(repaired->load(), 1);
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
