#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <latch>
#include <thread>
#include <vector>

#include "tune/made_up_kernels.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// A store that cannot be written to, as on a full disk; counts the races whose results it was to keep.
class FullDisk final : public MeasurementStore {
 public:
  std::atomic<int> puts{0};

  void put(const Environment&, const TuneRecord&) override {
    ++puts;
    fail(ErrorCode::io_error, "put", "the disk is full");
  }
  std::shared_ptr<const StoreSnapshot> freeze(const Environment&) const override {
    class Nothing final : public StoreSnapshot {
      std::optional<Entry> find(std::string_view) const override { return std::nullopt; }
      std::size_t size() const override { return 0; }
    };
    return std::make_shared<const Nothing>();
  }
  StoreContents read(const StoreFilter&) const override { return {}; }
  std::size_t merge(const StoreContents&) override { return 0; }
  std::size_t prune(const StoreFilter&) override { return 0; }
  void check() const override {}
  std::string path() const override { return "nowhere"; }
  bool read_only() const override { return false; }
};

class TuningOnTheWay : public ::testing::Test {
 protected:
  TuningOnTheWay() {
    std::fill_n(in.as<float>(), 4096, -1.0f);
    policy.auto_strategy = Strategy::best_performance;
    options.problem_budget_s = 0.02;
  }
  Call call() const { return {OpId::relu, inputs, outputs}; }
  std::string because() { return runtime.dispatcher().decide(call()).because; }
  float first_of_relu() {
    runtime.dispatcher().dispatch(call());
    return *out.as<float>();
  }
  /// A third-party kernel of relu, which goes before ours.
  void add_kernel(const char* name, std::function<Status(const RunArguments&)> run) {
    FunctionKernel kernel{.op = OpId::relu, .name = name};
    kernel.run = [run = std::move(run)](const Problem&, const RunArguments& arguments) { return run(arguments); };
    kernel.version = "1";
    runtime.registry().register_kernel(make_kernel(std::move(kernel)));
  }
  void add_wrong() {
    add_kernel("wrong", [](const RunArguments& arguments) {
      const Tensor& result = *arguments.outputs[0];
      std::fill_n(result.as<float>(), element_count(result.spec()), 7.0f);
      return Status();
    });
  }

  Runtime runtime{{false, false, {}}};
  KernelPolicy policy;
  TuneOptions options;
  Tensor in = Tensor::empty(DataType::float32, {4096}), out = Tensor::empty(DataType::float32, {4096});
  std::array<const Tensor*, 1> inputs = {&in}, outputs = {&out};
};

TEST_F(TuningOnTheWay, StoresWhatItFindsForTheNextProcess) {
  const std::string path = ::testing::TempDir() + "tuning_on_the_way.sqlite";
  std::filesystem::remove(path);
  runtime.use_store(open_store(path));
  runtime.enable_tuning(options);
  runtime.dispatcher().set_policy(policy);
  runtime.dispatcher().dispatch(call());
  EXPECT_TRUE(because().starts_with("tuned: ")) << because();
  EXPECT_EQ(out.as<float>()[0], 0);

  Runtime next({false, false, {}});
  next.use_store(open_store(path, StoreMode::read_only));
  next.dispatcher().set_policy(policy);
  const Decision decision = next.dispatcher().decide(call());
  EXPECT_TRUE(decision.because.starts_with("tuned: ")) << decision.because;
  EXPECT_EQ(decision.kernel, runtime.dispatcher().decide(call()).kernel);
  runtime.use_store(nullptr);
  std::filesystem::remove(path);
}

// Kept for good, it would keep later processes with more time from ever comparing.
TEST_F(TuningOnTheWay, ARaceThatItsBudgetEndedAfterOneKernelIsHeldAgain) {
  const std::string problem = "relu(f32[4096]) @cpu:0";
  const auto measured = [&](const char* kernel) { return Measurement{problem, kernel, "", 5, 0.1, 10, 0, 0, 1000}; };
  TuneRecord record{{measured("reference")}, {{problem, "reference", "", "simd", "", /*cut_short=*/true, 1000}}, {}};
  for (const bool compared : {false, true}) {
    const std::string path = ::testing::TempDir() + "race_again.sqlite";
    std::filesystem::remove(path);
    if (compared) record.measurements.push_back(measured("simd"));
    open_store(path)->put(environment_of(runtime.devices().profile({})), record);
    Runtime next({false, false, {}});
    next.use_store(open_store(path));
    next.enable_tuning(options);
    next.dispatcher().set_policy(policy);
    EXPECT_EQ(next.dispatcher().decide(call()).kernel, compared ? "reference" : "simd");
    next.use_store(nullptr);
    std::filesystem::remove(path);
  }
}

TEST_F(TuningOnTheWay, ACallDoesNotFailBecauseTheStoreCannotBeWritten) {
  runtime.use_store(std::make_shared<FullDisk>());
  runtime.enable_tuning(options);
  runtime.dispatcher().set_policy(policy);
  runtime.dispatcher().dispatch(call());
  EXPECT_NE(because().find("it was not stored: [put] the disk is full"), std::string::npos) << because();

  std::string told;
  EXPECT_TRUE(runtime.tune(std::array{parse_problem("relu(f32[64])")}, options,
                           [&](const TuneResult& result) { told = result.not_stored; }));
  EXPECT_NE(told.find("the disk is full"), std::string::npos);
}

// The reference would win for good in every process to come, and nobody would know why calls are slow.
TEST_F(TuningOnTheWay, DoesNotStoreThatOnlyTheReferenceIsRight) {
  const std::string path = ::testing::TempDir() + "only_the_reference.sqlite";
  std::filesystem::remove(path);
  runtime.registry().add_backend(std::make_shared<testing::WrongCpu>(), KernelOrigin::built_in);
  const std::shared_ptr<MeasurementStore> store = open_store(path);
  runtime.use_store(store);
  runtime.enable_tuning(options);
  runtime.dispatcher().set_policy(policy);
  const Tensor wide = Tensor::empty(DataType::float64, {64});  // no other kernel of ours takes f64
  const Tensor* const tensors[] = {&wide};
  const Decision decision = runtime.dispatcher().decide({OpId::relu, tensors, tensors});
  EXPECT_EQ(decision.kernel, "reference");
  EXPECT_NE(decision.because.find("it was not stored: no kernel but the reference passed the check"), std::string::npos)
      << decision.because;
  EXPECT_TRUE(store->read({}).empty());
  runtime.use_store(nullptr);
  std::filesystem::remove(path);
}

TEST_F(TuningOnTheWay, CallbacksMayCallOpsThatWouldBeTuned) {
  runtime.enable_tuning(options);
  runtime.dispatcher().set_policy(policy);
  int called = 0;
  TuneOptions asking = options;
  asking.progress = [&](const TuneProgress&) {
    runtime.dispatcher().dispatch(call());
    ++called;
    return true;
  };
  EXPECT_TRUE(runtime.tune(std::array{parse_problem("relu(f32[64])")}, asking, [&](const TuneResult&) {
    runtime.dispatcher().dispatch(call());
    EXPECT_THROW(runtime.tune(std::array{parse_problem("relu(f32[65])")}, options), Error);
  }));
  EXPECT_GT(called, 0);
}

TEST_F(TuningOnTheWay, AFrozenStoreIsLookedAtAgainOnRequest) {
  const std::string path = ::testing::TempDir() + "frozen.sqlite";
  std::filesystem::remove(path);
  runtime.use_store(open_store(path));
  runtime.dispatcher().set_policy(policy);
  EXPECT_TRUE(because().starts_with("no kernel was measured")) << because();
  {
    Runtime other({false, false, {}});
    other.use_store(open_store(path));
    EXPECT_TRUE(other.tune(std::array{parse_problem("relu(f32[4096])")}, options));
  }
  runtime.dispatcher().set_policy(policy);
  EXPECT_TRUE(because().starts_with("no kernel was measured")) << because();
  runtime.refresh_measurements();
  runtime.dispatcher().set_policy(policy);
  EXPECT_TRUE(because().starts_with("tuned: ")) << because();
  runtime.use_store(nullptr);
  std::filesystem::remove(path);
}

TEST_F(TuningOnTheWay, WhatTuneHasFoundCountsForTheNextPolicy) {
  const std::string path = ::testing::TempDir() + "found.sqlite";
  std::filesystem::remove(path);
  runtime.use_store(open_store(path));
  EXPECT_TRUE(runtime.tune(std::array{parse_problem("relu(f32[4096])")}, options));
  runtime.dispatcher().set_policy(policy);
  EXPECT_TRUE(because().starts_with("tuned: ")) << because();
  runtime.use_store(nullptr);
  std::filesystem::remove(path);
}

TEST_F(TuningOnTheWay, ThreadsWithTheSameFirstCallMeasureItOnce) {
  const auto store = std::make_shared<FullDisk>();
  runtime.use_store(store);
  runtime.enable_tuning(options);
  runtime.dispatcher().set_policy(policy);
  constexpr std::size_t count = 4;
  std::latch together(count);
  std::array<Decision, count> decisions;
  std::vector<std::thread> threads;
  for (Decision& decision : decisions) {
    threads.emplace_back([&] {
      together.arrive_and_wait();
      decision = runtime.dispatcher().explain(parse_problem("relu(f32[4096])"));  // is asked each time
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->puts, 1);
  for (const Decision& decision : decisions) {
    EXPECT_TRUE(decision.because.starts_with("tuned: ")) << decision.because;
    ASSERT_EQ(decision.candidates.size(), decisions[0].candidates.size());
    for (std::size_t i = 0; i < decision.candidates.size(); ++i)
      EXPECT_EQ(decision.candidates[i].time_us, decisions[0].candidates[i].time_us);
  }
}

TEST_F(TuningOnTheWay, WhatTuneHasMeasuredIsNotMeasuredAgain) {
  const auto store = std::make_shared<FullDisk>();
  runtime.use_store(store);
  runtime.dispatcher().set_policy(policy);
  runtime.enable_tuning(options);
  EXPECT_TRUE(runtime.tune(std::array{parse_problem("relu(f32[4096])")}, options));
  EXPECT_TRUE(because().starts_with("tuned: ")) << because();
  EXPECT_EQ(store->puts, 1);
}

TEST_F(TuningOnTheWay, WhatTheStoreHasByNowIsNotMeasuredAgain) {
  const std::string path = ::testing::TempDir() + "by_now.sqlite";
  std::filesystem::remove(path);
  runtime.use_store(open_store(path));
  runtime.dispatcher().set_policy(policy);  // with nothing in the store
  EXPECT_TRUE(runtime.tune(std::array{parse_problem("relu(f32[4096])")}, options));
  int measured = 0;
  options.progress = [&](const TuneProgress&) { return ++measured > 0; };
  runtime.enable_tuning(options);
  EXPECT_TRUE(because().starts_with("tuned: ")) << because();
  EXPECT_EQ(measured, 0);
  runtime.use_store(nullptr);
  std::filesystem::remove(path);
}

TEST_F(TuningOnTheWay, AKernelThatTuneFoundWrongIsRefusedByEveryThreadAndStrategy) {
  add_wrong();
  Dispatcher& dispatcher = runtime.dispatcher();
  std::latch decided(1), tuned(1);
  float before = 0, after = 0;
  std::thread other([&] {
    before = first_of_relu();
    decided.count_down();
    tuned.wait();
    after = first_of_relu();
  });
  decided.wait();
  EXPECT_TRUE(runtime.tune(std::array{parse_problem("relu(f32[4096])")}, options));
  tuned.count_down();
  other.join();
  EXPECT_EQ(before, 7);
  EXPECT_EQ(after, 0);
  ASSERT_EQ(dispatcher.quarantined().size(), 1u);
  EXPECT_EQ(dispatcher.quarantined()[0].kernel, "wrong");
  const std::string reason = dispatcher.quarantined()[0].reason;
  EXPECT_TRUE(reason.starts_with("quarantined: it gave wrong numbers") && reason.ends_with("(found by tuning)"))
      << reason;

  for (const Strategy strategy : {Strategy::first_supported, Strategy::lowest_memory, Strategy::best_performance}) {
    policy.auto_strategy = strategy;
    dispatcher.set_policy(policy);
    EXPECT_EQ(first_of_relu(), 0) << to_string(strategy);
  }
  dispatcher.set_policy({});
  EXPECT_EQ(dispatcher.explain(parse_problem("relu(f32[4095])")).kernel, "wrong");  // was not tuned

  dispatcher.clear_quarantine();
  EXPECT_EQ(first_of_relu(), 7);
}

TEST_F(TuningOnTheWay, AKernelRegisteredAnewStartsWithoutTheOldOnesQuarantine) {
  add_wrong();
  EXPECT_TRUE(runtime.tune(std::array{parse_problem("relu(f32[4096])")}, options));
  EXPECT_EQ(first_of_relu(), 0);
  runtime.registry().unregister_kernel(OpId::relu, DeviceType::cpu, "wrong");
  add_wrong();
  EXPECT_EQ(first_of_relu(), 7);
}

TEST_F(TuningOnTheWay, WhatTuningOnTheWayQuarantinesIsRefusedUnderOtherStrategiesToo) {
  const pid_t here = getpid();
  int runs = 0;
  add_kernel("exits", [&, here](const RunArguments& arguments) {
    if (getpid() != here) _exit(3);
    ++runs;
    return testing::relu(arguments);
  });
  runtime.enable_tuning(options);
  {
    const ScopedPolicy scope(runtime.dispatcher(), policy);
    EXPECT_EQ(first_of_relu(), 0);
  }
  EXPECT_EQ(first_of_relu(), 0);
  EXPECT_EQ(runs, 0);
  ASSERT_EQ(runtime.dispatcher().quarantined().size(), 1u);
  EXPECT_EQ(runtime.dispatcher().quarantined()[0].reason,
            "quarantined: it ended the process with exit code 3 in run (found by tuning)");
}

TEST_F(TuningOnTheWay, EachSizeThatWasMeasuredOfARangeIsQuarantined) {
  add_wrong();
  const RangeResult result = runtime.tune(parse_problem_range("relu(f32[n]) where n=5..7"), options);
  ASSERT_FALSE(result.measured.empty());
  EXPECT_EQ(runtime.dispatcher().quarantined().size(), result.measured.size());
  for (const TuneResult& race : result.measured)
    EXPECT_NE(runtime.dispatcher().explain(race.problem).kernel, "wrong") << to_string(race.problem);
}

}  // namespace
}  // namespace xpuruntime
