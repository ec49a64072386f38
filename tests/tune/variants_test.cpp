// Kernels that can make several plans: each takes part in the race.

#include <gtest/gtest.h>

#include "core/expect_error.h"
#include "tune/made_up_kernels.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {
namespace {

using testing::relu;

const Problem problem = parse_problem("relu(f32[64])");

/// Plans "t=0", "t=1", ...: each takes its own time. Chooses the first itself.
class Tiled final : public Kernel {
 public:
  Tiled(double& now_us, std::vector<double> times_us) : now_us_(now_us), times_us_(std::move(times_us)) {}
  OpId op() const override { return OpId::relu; }
  std::string_view name() const override { return "tiled"; }
  std::string_view version() const override { return "1"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  Verdict accepts(const Problem&, const DeviceProfile&) const override { return Verdict::yes(); }
  std::vector<std::string> variants(const Problem&, const PrepareContext&) const override {
    std::vector<std::string> tokens;
    for (std::size_t i = 0; i < times_us_.size(); ++i) tokens.push_back("t=" + std::to_string(i));
    return tokens;
  }
  std::unique_ptr<const Plan> make_plan(const Problem&, const PrepareContext&, std::string_view token) const override {
    struct TiledPlan final : Plan {
      TiledPlan(const Tiled& kernel, std::size_t number) : kernel_(kernel), number_(number) {}
      Status run(const RunArguments& arguments) const override {
        kernel_.now_us_ += kernel_.times_us_[number_];
        if (kernel_.lost) return Status(ErrorCode::device_lost, "the device is lost");
        return number_ == kernel_.wrong ? Status() : relu(arguments);
      }
      std::string token() const override { return "t=" + std::to_string(number_); }
      const Tiled& kernel_;
      std::size_t number_;
    };
    return std::make_unique<TiledPlan>(*this, token.empty() ? 0 : std::stoul(std::string(token.substr(2))));
  }

  std::size_t wrong = 99;  // the plan that computes nothing
  bool lost = false;

 private:
  double& now_us_;
  std::vector<double> times_us_;
};

class Variants : public ::testing::Test, protected testing::MadeUpMachine {
 protected:
  Variants() {
    add("reference", 300);
    options.isolate = false;
  }
  std::shared_ptr<Tiled> add_tiled(std::vector<double> times_us) {
    auto kernel = std::make_shared<Tiled>(now_us, std::move(times_us));
    registry.register_kernel(kernel);
    return kernel;
  }
  TuneResult tune(const std::vector<QuarantineEntry>& quarantined = {}) {
    return Tuner(registry, [this] { return now_us; }).tune(problem, "tiled", options, quarantined);
  }
  TuneOptions options;
};

TEST_F(Variants, TheFastestPlanWinsAndIsStoredByItsToken) {
  add_tiled({100, 50, 80});
  const TuneResult result = tune();
  EXPECT_EQ(result.chosen, "tiled");
  EXPECT_EQ(result.plan, "t=1");
  EXPECT_EQ(result.because,
            "it takes 50.0 % less time than tiled's own choice of a plan, which would be chosen without measuring");
  ASSERT_EQ(result.candidates.size(), 4u) << "its own choice, two others, the reference";
  EXPECT_EQ(result.candidates[0].plan, "t=0");
  EXPECT_EQ(result.candidates[1].plan, "t=1");
  EXPECT_EQ(result.candidates[2].plan, "t=2");
  const TuneRecord record = result.record(1);
  ASSERT_EQ(record.choices.size(), 1u);
  EXPECT_EQ(record.choices[0].plan, "t=1");
  EXPECT_EQ(record.measurements.size(), 4u);
  EXPECT_EQ(result.default_row(), &result.candidates[0]);
  EXPECT_EQ(result.chosen_row(), &result.candidates[1]);
  EXPECT_NEAR(result.gain, 2, 0.01);
}

TEST_F(Variants, ItsOwnChoiceStaysForLittle) {
  add_tiled({100, 99});
  const TuneResult result = tune();
  EXPECT_EQ(result.plan, "t=0");
  EXPECT_EQ(result.gain, 1);
}

TEST_F(Variants, OneThatIsWrongIsQuarantinedAlone) {
  add_tiled({100, 10, 50})->wrong = 1;
  const TuneResult result = tune();
  EXPECT_EQ(result.plan, "t=2");
  const TuneRecord record = result.record(1);
  ASSERT_EQ(record.quarantine.size(), 1u);
  EXPECT_EQ(record.quarantine[0].kernel, "tiled");
  EXPECT_EQ(record.quarantine[0].plan, "t=1");

  const TuneResult again = tune(record.quarantine);
  EXPECT_EQ(again.plan, "t=2");
  EXPECT_TRUE(again.candidates[1].known_bad);
  EXPECT_EQ(again.record(1).quarantine.size(), 0u);
}

TEST_F(Variants, ALostDeviceEndsTheTuningAndLeavesNothingToStore) {
  add_tiled({100, 50})->lost = true;
  expect_error(ErrorCode::device_lost, "the device is lost", [&] { tune(); });
  const std::vector<TuneTask> tasks = {{problem, "tiled"}, {problem, "tiled"}};
  int finished = 0;
  expect_error(ErrorCode::device_lost, "the device is lost", [&] {
    Tuner(registry, [this] { return now_us; }).tune_all(tasks, options, [&](const TuneResult&) { ++finished; });
  });
  EXPECT_EQ(finished, 0);
}

}  // namespace
}  // namespace xpuruntime
