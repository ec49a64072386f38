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
    Verdict supports(const Problem&, const DeviceProfile&) const override { return Verdict::yes(); }
    std::unique_ptr<const Plan> prepare(const Problem&, const PrepareContext&) const override {
      throw std::runtime_error("the compiler gave up");
    }
  };
  runtime.registry().register_kernel(std::make_shared<Unprepared>());
  const Decision& decision = dispatcher().decide(relu.call());
  EXPECT_EQ(decision.kernel, "reference");
  EXPECT_HAS(decision.candidates.front().reason, "the compiler gave up");
}

TEST_F(Recovery, FailuresAreWorkedThroughInOrderUntilOneRuns) {
  add_kernel("bad", broken);
  add_kernel("worse", broken);
  KernelPolicy policy;
  policy.set_order("relu", {"bad", "worse"});
  dispatcher().set_policy(policy);
  dispatcher().dispatch(relu.call());
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "reference");
  EXPECT_EQ(dispatcher().quarantined().size(), 2u);
}

}  // namespace
}  // namespace xpuruntime
