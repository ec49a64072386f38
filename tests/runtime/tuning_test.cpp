#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "tune/made_up_kernels.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// A store that cannot be written to, as on a full disk.
class FullDisk final : public MeasurementStore {
 public:
  void put(const Environment&, const TuneRecord&) override { fail(ErrorCode::io_error, "put", "the disk is full"); }
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

}  // namespace
}  // namespace xpuruntime
