// Plans by token, plans of many problems, what only a plan can tell, and streams that are captured.

#include <algorithm>

#include "device/fake_driver.h"
#include "dispatch/fixture.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/graph_capture.h"
#include "xpuruntime/device/workspace_pool.h"
#include "xpuruntime/select/exact_rule.h"

namespace xpuruntime {
namespace {

/// What a test says of the kernel below, and what that counts.
struct Tiles {
  std::vector<std::string> tokens = {"tile=4", "tile=8"};
  bool cannot_list = false;
  std::string own = "tile=4";
  std::optional<std::uint64_t> workspace_bytes = {};
  std::optional<bool> deterministic = {};
  bool outlives_its_work = true;
  bool sets_device = false;
  bool one_plan_for_all = false;
  bool other_class = false;  // the one plan is for another op
  std::optional<ErrorCode> refuses = {};
  Status status = {};

  int made = 0;
  int alive = 0;
  std::vector<std::int64_t> ended = {};  // the sizes that plans were made for
  std::string last_run = {};
  Device current = {};  // when it ran
};

class TiledPlan final : public Plan {
 public:
  TiledPlan(std::shared_ptr<Tiles> tiles, std::string token, std::int64_t size)
      : tiles_(std::move(tiles)), token_(std::move(token)), size_(size) {
    ++tiles_->made;
    ++tiles_->alive;
  }
  ~TiledPlan() override {
    --tiles_->alive;
    tiles_->ended.push_back(size_);
  }
  TiledPlan(const TiledPlan&) = delete;
  TiledPlan& operator=(const TiledPlan&) = delete;

  Status run(const RunArguments& arguments) const override {
    tiles_->last_run = token_ + " n=" + std::to_string(arguments.inputs[0]->shape()[0]);
    tiles_->current = current_device();
    return tiles_->status;
  }
  std::string token() const override { return token_; }
  std::optional<std::uint64_t> workspace_bytes() const override { return tiles_->workspace_bytes; }
  std::optional<bool> deterministic() const override { return tiles_->deterministic; }
  bool outlives_its_work() const override { return tiles_->outlives_its_work; }
  bool sets_device() const override { return tiles_->sets_device; }

 private:
  std::shared_ptr<Tiles> tiles_;
  std::string token_;
  std::int64_t size_;
};

class TiledKernel final : public Kernel {
 public:
  TiledKernel(std::shared_ptr<Tiles> tiles, DeviceType type) : tiles_(std::move(tiles)), type_(type) {}
  OpId op() const override { return OpId::relu; }
  std::string_view name() const override { return "tiled"; }
  std::string_view version() const override { return "1"; }
  DeviceType device_type() const override { return type_; }
  Verdict accepts(const Problem&, const DeviceProfile&) const override { return Verdict::yes(); }
  std::vector<std::string> variants(const Problem&, const PrepareContext&) const override {
    if (tiles_->cannot_list) fail(ErrorCode::internal, "tiled", "cannot list its plans");
    return tiles_->tokens;
  }
  std::optional<Problem> plan_problem(const Problem& problem) const override {
    if (!tiles_->one_plan_for_all) return {};
    Problem any = problem;
    any.inputs[0] = any.outputs[0] = make_spec(problem.inputs[0].dtype, {1});
    if (tiles_->other_class) any.op = OpId::exp;
    return any;
  }
  std::unique_ptr<const Plan> make_plan(const Problem& problem, const PrepareContext&,
                                        std::string_view token) const override {
    const std::int64_t size = problem.inputs[0].shape[0];
    if (tiles_->refuses) fail(*tiles_->refuses, "tiled", "only the library itself could tell");
    if (token.empty()) return std::make_unique<TiledPlan>(tiles_, tiles_->own, size);
    if (std::find(tiles_->tokens.begin(), tiles_->tokens.end(), token) == tiles_->tokens.end())
      fail(ErrorCode::not_supported, "tiled", "there is no " + std::string(token));
    return std::make_unique<TiledPlan>(tiles_, std::string(token), size);
  }

 private:
  std::shared_ptr<Tiles> tiles_;
  DeviceType type_;
};

class Plans : public DispatchTest {
 protected:
  Plans() { runtime.registry().register_kernel(std::make_shared<TiledKernel>(held, DeviceType::cpu)); }

  LockUse lock_to(const std::string& plan) {
    LockEntry entry{.problem = "relu(f32[8]) @cpu:0", .kernel = "tiled", .plan = plan, .kernel_version = "1"};
    KernelLock lock;
    lock.add(entry, environment_of(runtime.devices().profile({})));
    return {std::make_shared<const KernelLock>(lock)};
  }
  void run(const Relu& problem) { dispatcher().dispatch(problem.call()); }
  void run_under(const KernelPolicy& policy) {
    dispatcher().set_policy(policy);
    run(relu);
  }

  /// A policy under which every call was measured to be fastest by tiles of 8.
  KernelPolicy with_stored_choice() {
    class Stored final : public StoreSnapshot {
     public:
      std::optional<Entry> find(std::string_view problem) const override {
        Entry entry;
        entry.choice =
            TunedChoice{.problem = std::string(problem), .kernel = "tiled", .plan = "tile=8", .kernel_version = "1"};
        return entry;
      }
      std::size_t size() const override { return 1; }
    };
    dispatcher().set_measured_source([] {
      return std::make_shared<const Measurements>(Measurements::Snapshots{{Device{}, std::make_shared<Stored>()}});
    });
    KernelPolicy policy;
    policy.auto_strategy = Strategy::best_performance;
    return policy;
  }

  const std::shared_ptr<Tiles> held = std::make_shared<Tiles>();  // plans outlive the test's own members
  Tiles& tiles = *held;
  Relu relu;
};

TEST_F(Plans, AKernelChoosesItsOwnWhereNobodyNamesOne) {
  run(relu);
  EXPECT_EQ(tiles.last_run, "tile=4 n=8");
  EXPECT_EQ(dispatcher().decide(relu.call()).plan, "tile=4");
}

TEST_F(Plans, ALockRebuildsThePlanThatItNames) {
  dispatcher().set_lock(lock_to("tile=8"));
  run(relu);
  EXPECT_EQ(tiles.last_run, "tile=8 n=8");
  EXPECT_EQ(dispatcher().decide(relu.call()).plan, "tile=8");
  dispatcher().set_lock({});
  run(relu);
  EXPECT_EQ(tiles.last_run, "tile=4 n=8") << "the plan of a lock is not taken for the kernel's own";
}

TEST_F(Plans, ALockWhosePlanCannotBeBuiltIsRefused) {
  dispatcher().set_lock(lock_to("tile=16"));
  const std::string text = error_text(ErrorCode::not_supported, [&] { run(relu); });
  EXPECT_HAS(text, "the lock says tiled, which cannot run");
  EXPECT_HAS(text, "there is no tile=16");
  EXPECT_EQ(tiles.last_run, "");
  dispatcher().set_lock({});
  run(relu);
  EXPECT_EQ(tiles.last_run, "tile=4 n=8") << "that says nothing of the kernel's own choice";
}

TEST_F(Plans, AStoredChoiceIsRunWithItsPlan) {
  run_under(with_stored_choice());
  EXPECT_EQ(tiles.last_run, "tile=8 n=8");
}

TEST_F(Plans, AStoredChoiceIsThatOfAKernelThatAPolicyNames) {
  KernelPolicy policy = with_stored_choice();
  policy.force("relu", "tiled");
  run_under(policy);
  EXPECT_EQ(tiles.last_run, "tile=8 n=8");
}

TEST_F(Plans, AStoredPlanThatIsRefusedLeavesTheKernelItsOwn) {
  tiles.tokens = {"tile=4"};
  run_under(with_stored_choice());
  EXPECT_EQ(tiles.last_run, "tile=4 n=8");
  EXPECT_HAS(dispatcher().decide(relu.call()).because, "not by the plan tile=8: there is no tile=8");
  EXPECT_TRUE(dispatcher().quarantined().empty());
}

TEST_F(Plans, AKernelThatCannotListItsPlansMakesItsOwn) {
  tiles.cannot_list = true;
  run_under(with_stored_choice());
  EXPECT_EQ(tiles.last_run, "tile=4 n=8");
  EXPECT_TRUE(dispatcher().quarantined().empty());
}

TEST_F(Plans, ARuleMayNameOne) {
  KernelPolicy policy;
  policy.rules = {exact_rule(parse_problem("relu(f32[8])"), "tiled", "tile=8")};
  run_under(KernelPolicy::from_json(policy.to_json()));
  EXPECT_EQ(tiles.last_run, "tile=8 n=8");
  const Relu other(9);
  run(other);
  EXPECT_EQ(tiles.last_run, "tile=4 n=9");
}

TEST_F(Plans, OneMayServeManyProblemsAndReadsTheirExtents) {
  tiles.one_plan_for_all = true;
  for (const std::int64_t n : {8, 9, 100}) {
    const Relu other(n);
    run(other);
    EXPECT_EQ(tiles.last_run, "tile=4 n=" + std::to_string(n));
  }
  EXPECT_EQ(tiles.made, 1);
  const Relu halves(8, DataType::float16);
  run(halves);
  EXPECT_EQ(tiles.made, 2);
}

TEST_F(Plans, AClassOfAnotherOpIsAnErrorOfTheKernel) {
  tiles.one_plan_for_all = tiles.other_class = true;
  const Decision decision = dispatcher().decide(relu.call());
  EXPECT_NE(decision.kernel, "tiled");
  EXPECT_HAS(decision.candidates.front().reason, "is not of the op, direction, device and dtypes");
  EXPECT_EQ(tiles.made, 0);
}

TEST_F(Plans, WhatAPlanNeedsCountsAgainstTheLimit) {
  tiles.workspace_bytes = 4096;
  EXPECT_EQ(dispatcher().decide(relu.call()).workspace_bytes, 4096u);
  KernelPolicy policy;
  policy.workspace_limit_bytes = 1000;
  dispatcher().set_policy(policy);
  const Decision& decision = dispatcher().decide(relu.call());
  EXPECT_NE(decision.kernel, "tiled");
  EXPECT_HAS(decision.candidates.front().reason, "its plan needs 4096 bytes of workspace, the limit is 1000");
  EXPECT_TRUE(dispatcher().quarantined().empty());
}

TEST_F(Plans, OneThatIsNotDeterministicIsRefusedWhereThatIsAskedFor) {
  tiles.deterministic = false;
  EXPECT_EQ(dispatcher().decide(relu.call()).kernel, "tiled");
  KernelPolicy policy;
  policy.deterministic = true;
  dispatcher().set_policy(policy);
  EXPECT_NE(dispatcher().decide(relu.call()).kernel, "tiled");
}

TEST_F(Plans, ARefusalThatIsFoundInPrepareIsNoQuarantine) {
  tiles.refuses = ErrorCode::not_supported;
  const Decision& decision = dispatcher().decide(relu.call());
  EXPECT_EQ(decision.kernel, "simd");
  EXPECT_HAS(decision.candidates.front().reason, "only the library itself could tell");
  EXPECT_EQ(decision.candidates.front().reason.find("quarantined"), std::string::npos);
  EXPECT_TRUE(dispatcher().quarantined().empty());

  tiles.refuses = ErrorCode::device_error;
  EXPECT_EQ(dispatcher().explain(parse_problem("relu(f32[9])")).kernel, "simd");
  ASSERT_EQ(dispatcher().quarantined().size(), 1u);
}

TEST_F(Plans, ALackOfMemoryInPrepareIsPassedOverForNow) {
  tiles.refuses = ErrorCode::out_of_memory;
  EXPECT_EQ(dispatcher().explain(parse_problem("relu(f32[8])")).kernel, "simd");
  tiles.refuses = {};
  EXPECT_EQ(dispatcher().explain(parse_problem("relu(f32[8])")).kernel, "tiled");
}

TEST_F(Plans, ALostDeviceIsOneErrorAndNothingIsBlamed) {
  tiles.status = Status(ErrorCode::device_lost, "an illegal address was read");
  const std::string text = error_text(ErrorCode::device_lost, [&] { run(relu); });
  EXPECT_HAS(text, "an illegal address was read");
  EXPECT_HAS(text, "start a new process");
  EXPECT_TRUE(dispatcher().quarantined().empty());
  tiles.refuses = ErrorCode::device_lost;
  const Relu other(9);
  error_text(ErrorCode::device_lost, [&] { run(other); });
  EXPECT_TRUE(dispatcher().quarantined().empty());
}

// --- on a device that works on by itself ---

constexpr Device npu{DeviceType::npu, 0};

class PlansOnADevice : public DispatchTest {
 protected:
  PlansOnADevice() {
    runtime.devices().add_driver(driver);
    runtime.registry().register_kernel(std::make_shared<TiledKernel>(held, DeviceType::npu));
  }
  ~PlansOnADevice() override { driver->destroy_graph(0, driver->end_capture(0, {})); }  // what tests recorded

  void run(std::int64_t n) {
    const Tensor in = runtime.devices().allocate(DataType::float32, {n}, npu);
    const Tensor out = runtime.devices().allocate(DataType::float32, {n}, npu);
    const std::array<const Tensor*, 1> inputs = {&in};
    const std::array<const Tensor*, 1> outputs = {&out};
    dispatcher().dispatch({OpId::relu, inputs, outputs});
  }
  /// More than are kept.
  void run_many() {
    for (std::int64_t n = 1; n <= 9000; ++n) run(n);
  }

  std::shared_ptr<testing::FakeDriver> driver = std::make_shared<testing::FakeDriver>();
  const std::shared_ptr<Tiles> held = std::make_shared<Tiles>();
  Tiles& tiles = *held;
};

TEST_F(PlansOnADevice, OneThatItsWorkReadsIsWaitedForBeforeItDies) {
  run_many();
  EXPECT_LT(tiles.alive, 9000);
  EXPECT_GT(driver->synchronizations(), 0);
}

TEST_F(PlansOnADevice, OneWhoseLaunchesCopyAllGoesWithoutAWait) {
  tiles.outlives_its_work = false;
  run_many();
  EXPECT_LT(tiles.alive, 9000);
  EXPECT_EQ(driver->synchronizations(), 0);
}

TEST_F(PlansOnADevice, OneThatDoesNotSetItsDeviceFindsItCurrent) {
  run(8);
  EXPECT_EQ(tiles.current, npu);
  EXPECT_EQ(current_device(), Device{});
  tiles.sets_device = true;
  run(9);
  EXPECT_EQ(tiles.current, Device{});
}

TEST_F(PlansOnADevice, WhatWasNotDecidedBeforeACaptureIsAnErrorThatNamesTheWarmUp) {
  run(8);
  driver->is_capturing = true;
  run(8);  // known: it is recorded
  const std::string text = error_text(ErrorCode::not_supported, [&] { run(9); });
  EXPECT_HAS(text, "run the same calls once before the capture");
  EXPECT_EQ(tiles.made, 1);
  run(8);
  driver->is_capturing = false;
  run(9);
  EXPECT_EQ(tiles.made, 2);
}

TEST_F(PlansOnADevice, WhatAGraphRunsIsKeptUntilItIsDestroyed) {
  tiles.workspace_bytes = 4096;
  run(8);
  const auto ended = [&] { return std::count(tiles.ended.begin(), tiles.ended.end(), 8); };
  const auto in_use = [&] { return runtime.devices().workspace(npu).stats().bytes_in_use; };
  {
    GraphCapture graph(runtime.devices(), npu);
    run(8);
    graph.end();
    EXPECT_EQ(in_use(), 4096U);
    EXPECT_EQ(driver->bytes_used(0), 2 * 4096U + 2 * 8 * sizeof(float)) << "its tensors live as long as the graph";
    run_many();
    runtime.registry().invalidate();
    run(9000);
    run(8999);  // and here what the thread's table had is let go
    EXPECT_EQ(ended(), 0) << "the caches have dropped the plan, and the graph has not";
    graph.replay();
    EXPECT_EQ(tiles.made, 9000);
  }
  EXPECT_EQ(ended(), 1);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(PlansOnADevice, AGraphMayOutliveTheDispatcher) {
  DeviceGraph graph;
  {
    Runtime other{{false, false, {}}};
    other.devices().add_driver(driver);
    other.registry().register_kernel(std::make_shared<TiledKernel>(held, DeviceType::npu));
    const Tensor x = other.devices().allocate(DataType::float32, {8}, npu);
    const std::array<const Tensor*, 1> inputs = {&x};
    other.dispatcher().dispatch({OpId::relu, inputs, inputs});
    driver->begin_capture(0, {});
    other.dispatcher().dispatch({OpId::relu, inputs, inputs});
    graph = driver->end_capture(0, {});
  }
  EXPECT_EQ(tiles.alive, 0);
  driver->destroy_graph(0, graph);
}

TEST_F(PlansOnADevice, ALaunchThatFailsInACaptureIsNotHeldAgainstItsKernel) {
  run(8);
  driver->is_capturing = true;
  tiles.status = Status(ErrorCode::device_error, "the recording was broken");
  EXPECT_HAS(error_text(ErrorCode::device_error, [&] { run(8); }), "the recording was broken");
  tiles.status = {};
  run(8);
  EXPECT_TRUE(dispatcher().quarantined().empty());
}

TEST_F(PlansOnADevice, NoKernelIsBlamedForADeviceThatEarlierWorkLost) {
  run(8);
  driver->synchronize_status = Status(ErrorCode::device_lost, "an illegal address was read");
  tiles.status = Status(ErrorCode::device_error, "the library says: internal error");
  EXPECT_HAS(error_text(ErrorCode::device_lost, [&] { run(8); }), "an illegal address was read");
  tiles.refuses = ErrorCode::device_error;
  error_text(ErrorCode::device_lost, [&] { run(9); });
  EXPECT_TRUE(dispatcher().quarantined().empty());
  driver->synchronize_status = {};
}

TEST_F(PlansOnADevice, ARecordedCallIsLoggedWithoutATime) {
  dispatcher().enable_logging(16);
  run(8);
  driver->is_capturing = true;
  run(8);
  const std::vector<LogEntry> logs = dispatcher().logs();
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_TRUE(logs[0].device_time);
  EXPECT_FALSE(logs[1].device_time);
  EXPECT_EQ(logs[1].elapsed_us, 0);
}

TEST_F(PlansOnADevice, OutputsOfWhatWasNotDecidedAreNotAskedForInACapture) {
  const Tensor in = runtime.devices().allocate(DataType::float32, {8}, npu);
  const std::array<const Tensor*, 1> inputs = {&in};
  driver->is_capturing = true;
  EXPECT_HAS(error_text(ErrorCode::not_supported,
                        [&] {
                          dispatcher().output_specs({OpId::relu, inputs, {}});
                        }),
             "run the same calls once before the capture");
  EXPECT_EQ(tiles.made, 0);
  driver->is_capturing = false;
  run(8);
  driver->is_capturing = true;
  EXPECT_EQ(dispatcher().output_specs({OpId::relu, inputs, {}})[0].shape, Dims{8});
}

TEST_F(PlansOnADevice, NothingIsWaitedForInACapture) {
  run_many();
  const int before = driver->synchronizations(), alive = tiles.alive;
  driver->is_capturing = true;
  runtime.registry().invalidate();
  error_text(ErrorCode::not_supported, [&] { run(1); });  // old decisions go here
  EXPECT_EQ(driver->synchronizations(), before);
  EXPECT_EQ(tiles.alive, alive);
  driver->is_capturing = false;
  for (std::int64_t n = 9001; n <= 18000; ++n) run(n);
  EXPECT_LT(tiles.alive, 9000);
}

}  // namespace
}  // namespace xpuruntime
