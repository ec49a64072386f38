#include "xpuruntime/tune/work_group_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace xpuruntime {
namespace {

/// Runs nothing; takes the time that a test says, by a device's clock and the host's.
class FakeFunction final : public SourceFunction {
 public:
  FunctionLimits limits() const override { return allowed; }
  Status run(const FunctionLaunch&, Stream) override { return {}; }
  Status run_timed(const FunctionLaunch& launch, double& device_us) override {
    ++runs[launch.local];
    if (launch.local[0] > 64) return {ErrorCode::invalid_argument, "too large for this kernel"};
    // The first run of each is slow.
    const double time = runs[launch.local] == 1 ? 1e6 : time_of(launch.local);
    device_us = device_says < 0 ? -1 : device_says * time;
    now += time + 10;
    return {};
  }
  double time_of(const WorkSize& local) const { return local[0] == 0 ? 500 : local[0] == 16 ? 100 : 200; }

  FunctionLimits allowed{256, {256, 256, 64}, 8};
  std::map<WorkSize, int> runs;
  double device_says = 1;
  double now = 0;
};

WorkGroupTuner tuner_of(FakeFunction& function) {
  WorkGroupOptions options;
  options.host_clock = [&function] { return function.now; };
  return WorkGroupTuner(options);
}

TEST(WorkSize, HasAText) {
  EXPECT_EQ(to_string(WorkSize{64, 1, 1}), "64");
  EXPECT_EQ(to_string(WorkSize{16, 8, 1}), "16x8");
  EXPECT_EQ(to_string(WorkSize{1, 1, 4}), "1x1x4");
  for (const WorkSize size : {WorkSize{64, 1, 1}, WorkSize{16, 8, 1}, WorkSize{1, 1, 4}})
    EXPECT_EQ(parse_work_size(to_string(size)), size);
  for (const char* text : {"", "x", "4x", "4xx4", "0", "4x0", "-4", "4x4x4x4", "4 "})
    EXPECT_EQ(parse_work_size(text), WorkSize{}) << text;
}

TEST(WorkGroupTuner, NeedsARunAndTwoCandidates) {
  EXPECT_THROW(WorkGroupTuner({.runs = 0}), Error);
  EXPECT_THROW(WorkGroupTuner({.max_candidates = 1}), Error);
}

TEST(WorkGroupTuner, TriesOnlyWhatDeviceAndKernelAllow) {
  const WorkGroupTuner tuner;
  for (const WorkSize global : {WorkSize{1000, 1, 1}, WorkSize{64, 64, 1}, WorkSize{7, 5, 3}, WorkSize{1, 1, 1}}) {
    const FunctionLimits limits{128, {128, 64, 4}, 32};
    const auto sizes = tuner.candidates(limits, global);
    EXPECT_EQ(sizes.front(), WorkSize{});
    EXPECT_LE(sizes.size(), 32u);
    EXPECT_GE(sizes.size(), 2u);
    for (const WorkSize& size : std::span(sizes).subspan(1)) {
      EXPECT_LE(size[0] * size[1] * size[2], 128u) << to_string(size);
      for (std::size_t d = 0; d < 3; ++d) {
        EXPECT_LE(size[d], limits.max_sizes[d]);
        EXPECT_LT(size[d], 2 * global[d]) << to_string(size);
      }
    }
  }
}

TEST(WorkGroupTuner, TriesOnlyWhatTheSourceFixes) {
  const FunctionLimits limits{128, {128, 64, 4}, 32, {8, 8, 1}};
  EXPECT_EQ(WorkGroupTuner().candidates(limits, {1000, 1000, 1}), (std::vector<WorkSize>{{8, 8, 1}}));
}

TEST(WorkGroupTuner, KeepsTheFastestAndThrowsTheFirstRunAway) {
  FakeFunction function;
  const WorkGroupResult result = tuner_of(function).tune(function, "fake", {{}, {1024, 1, 1}});
  EXPECT_EQ(result.local, (WorkSize{16, 1, 1}));
  EXPECT_EQ(result.time_us, 100);
  EXPECT_TRUE(result.trusted);
  EXPECT_EQ(result.kernel, "fake");
  for (const auto& [local, runs] : function.runs) EXPECT_EQ(runs, local[0] > 64 ? 1 : 6) << to_string(local);
  const auto failed = std::count_if(result.trials.begin(), result.trials.end(),
                                    [](const auto& trial) { return trial.failure == "too large for this kernel"; });
  EXPECT_EQ(failed, 2);  // 128 and 256
}

TEST(WorkGroupTuner, DoesNotTrustADeviceWhoseClockDisagreesWithTheHosts) {
  for (const double says : {-1.0, 0.0, 2.0, 0.001}) {
    FakeFunction function;
    function.device_says = says;
    if (says == 0.001) function.now = 1;
    WorkGroupOptions options;
    const double slow = says == 0.001 ? 1000 : 1;  // milliseconds of the host for microseconds of the device
    options.host_clock = [&, slow] { return slow * function.now; };
    const WorkGroupResult result = WorkGroupTuner(options).tune(function, "fake", {{}, {1024, 1, 1}});
    EXPECT_FALSE(result.trusted) << says;
    EXPECT_NE(result.why_untrusted, "") << says;
    EXPECT_EQ(result.local, (WorkSize{16, 1, 1})) << "the host's clock decides";
    EXPECT_GE(result.time_us, 100) << says;
  }
}

TEST(WorkGroupTuner, WithoutASizeThatRunsIsAnError) {
  FakeFunction function;
  function.allowed.required = {128, 1, 1};
  EXPECT_THROW(tuner_of(function).tune(function, "fake", {{}, {1024, 1, 1}}), Error);
}

class AutotunerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("xrt_autotuner_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    profile_.name = "a device";
    profile_.vendor = "somebody";
    other_.name = "another device";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::shared_ptr<MeasurementStore> store() { return open_store((folder_ / "store.sqlite").string()); }

  std::filesystem::path folder_;
  DeviceProfile profile_, other_;
  TunedKernel kernel_{{DeviceType::opencl, 0}, &profile_, "fake", "sha256:1"};
  FakeFunction function_;
  const FunctionLaunch launch_{{}, {1024, 1, 1}};
};

TEST_F(AutotunerTest, RemembersForEachKernelAndGlobalSize) {
  Autotuner tuner(nullptr, tuner_of(function_));
  EXPECT_FALSE(tuner.known(kernel_, launch_.global));
  EXPECT_EQ(tuner.tune(kernel_, function_, launch_).local, (WorkSize{16, 1, 1}));
  EXPECT_EQ(tuner.known(kernel_, launch_.global), (WorkSize{16, 1, 1}));
  EXPECT_FALSE(tuner.known(kernel_, {2048, 1, 1}));
  TunedKernel other = kernel_;
  other.version = "sha256:2";
  EXPECT_FALSE(tuner.known(other, launch_.global)) << "other code";
  other = kernel_;
  other.device.index = 1;
  EXPECT_FALSE(tuner.known(other, launch_.global));
}

TEST_F(AutotunerTest, AnotherProcessFindsTheResultInTheStore) {
  Autotuner(store(), tuner_of(function_)).tune(kernel_, function_, launch_);
  const Autotuner next(store());
  EXPECT_EQ(next.known(kernel_, launch_.global), (WorkSize{16, 1, 1}));
  TunedKernel other = kernel_;
  other.profile = &other_;
  EXPECT_FALSE(next.known(other, launch_.global));
  other = kernel_;
  other.version = "sha256:2";
  EXPECT_FALSE(Autotuner(store()).known(other, launch_.global));
  const StoreContents contents = store()->read({.op = "opencl_kernel"});
  ASSERT_EQ(contents.size(), 1u);
  EXPECT_EQ(contents[0].record.choices.at(0).plan, "local=16");
  EXPECT_EQ(contents[0].record.choices.at(0).problem, "opencl_kernel(fake 1024) @opencl:0");
}

ErrorCode code_of(const std::function<void()>& body, std::string& text) {
  try {
    body();
  } catch (const Error& error) {
    text = error.what();
    return error.code();
  }
  text = "nothing failed";
  return ErrorCode::internal;
}

TEST(Autotuner, WithoutAProfileIsAWrongArgument) {
  Autotuner tuner;
  FakeFunction function;
  const TunedKernel kernel{Device{DeviceType::opencl, 0}, nullptr, "scale", "1"};
  std::string text;
  EXPECT_EQ(code_of([&] { tuner.known(kernel, {64}); }, text), ErrorCode::invalid_argument);
  EXPECT_NE(text.find("the profile of 'scale' is null"), std::string::npos) << text;
  EXPECT_EQ(code_of([&] { tuner.tune(kernel, function, {{}, {64}}); }, text), ErrorCode::invalid_argument) << text;
}

/// Fails in the same way, whatever the local size.
class FailingFunction final : public SourceFunction {
 public:
  explicit FailingFunction(Status status) : status_(std::move(status)) {}
  FunctionLimits limits() const override { return {256, {256, 256, 64}, 8}; }
  Status run(const FunctionLaunch&, Stream) override { return status_; }
  Status run_timed(const FunctionLaunch&, double&) override { return status_; }

 private:
  Status status_;
};

TEST(WorkGroupTuner, GivesTheErrorThatEverySizeGave) {
  std::string text;
  FailingFunction wrong({ErrorCode::invalid_argument, "'scale' has 3 parameters, and 1 arguments were given"});
  EXPECT_EQ(code_of([&] { WorkGroupTuner().tune(wrong, "scale", {}); }, text), ErrorCode::invalid_argument);
  EXPECT_EQ(text, "[WorkGroupTuner] 'scale' has 3 parameters, and 1 arguments were given");
  FailingFunction full({ErrorCode::out_of_memory, "the device is full"});
  EXPECT_EQ(code_of([&] { WorkGroupTuner().tune(full, "scale", {}); }, text), ErrorCode::out_of_memory);
  EXPECT_NE(text.find("'scale' ran with no local size: the device is full"), std::string::npos) << text;
}

TEST(WorkGroupTuner, TakesZerosForDimensionsThatAreNotThere) {
  FakeFunction function;
  const WorkGroupResult result = tuner_of(function).tune(function, "scale", {{}, {1000}});
  EXPECT_EQ(result.global, (WorkSize{1000, 1, 1}));
  EXPECT_EQ(tuner_of(function).candidates(function.limits(), {1000}),
            tuner_of(function).candidates(function.limits(), {1000, 1, 1}));
  const Device device{DeviceType::opencl, 0};
  EXPECT_EQ(Autotuner::key({device, nullptr, "scale", ""}, {1000}),
            Autotuner::key({device, nullptr, "scale", ""}, {1000, 1, 1}));
  EXPECT_EQ(filled({4, 0, 4}), (WorkSize{4, 0, 4})) << "no dimension is left out before one that is there";
}

TEST(WorkGroupTuner, EndsForSizesPastEveryPowerOfTwo) {
  FakeFunction function;
  EXPECT_FALSE(WorkGroupTuner().candidates(function.limits(), {std::size_t(-5), 1, 1}).empty());
}

}  // namespace
}  // namespace xpuruntime
