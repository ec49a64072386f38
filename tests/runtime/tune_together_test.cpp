#include "runtime/tune_together.h"

#include <gtest/gtest.h>

#include "tune/made_up_kernels.h"

namespace xpuruntime {
namespace {

/// By a clock that moves only while kernels run: tens of milliseconds for a vector, little for a matrix.
class TuneTogether : public ::testing::Test, protected testing::MadeUpMachine {
 protected:
  TuneTogether() {
    add_kernel("reference", 60'000, 60'000);
    add_kernel("for_long", 100'000, 20'000);
    add_kernel("for_short", 20'000, 100'000);
    options_.isolate = false;
    options_.range_points = 200;        // time runs out first
    options_.problem_budget_s = 0.002;  // less than a call: every race is the shortest, whatever its share
  }

  void add_kernel(const std::string& name, double short_us, double long_us) {
    FunctionKernel kernel{.op = OpId::relu, .name = name};
    kernel.version = "1";
    kernel.run = [this, short_us, long_us](const Problem& problem, const RunArguments& arguments) {
      const Dims& shape = problem.inputs[0].shape;
      now_us += shape.size() > 1 ? 100 : shape[0] <= 100 ? short_us : long_us;
      return testing::relu(arguments);
    };
    registry.register_kernel(make_kernel(std::move(kernel)));
  }

  /// What the ranges ended with, and the seconds that it took in all.
  std::pair<std::vector<RangeResult>, double> tune(std::optional<double> budget_s) {
    options_.total_budget_s = budget_s;
    const double before = now_us;
    auto ranges = tune_together(dispatcher_, measured_, {}, ranges_, options_, {}).ranges;
    return {std::move(ranges), (now_us - before) / 1e6};
  }

  const std::vector<ProblemRange> ranges_ = {parse_problem_range("relu(f32[n]) where n=1..512"),
                                             parse_problem_range("relu(f32[2,n]) where n=1..24")};
  TuneOptions options_;
  Dispatcher dispatcher_{registry};
  MeasuredChoices measured_{dispatcher_, [this] { return now_us; }};
};

// Half of the budget is the first range's share, and less than that is left: too little to measure it all again.
TEST_F(TuneTogether, ARangeGoesOnWithWhatAnotherLeavesFromWhatItHasMeasured) {
  const auto [whole, needed_s] = tune(std::nullopt);
  ASSERT_EQ(whole.size(), 2u);
  ASSERT_EQ(whole[0].undecided, 0u) << whole[0].summary();
  ASSERT_LT(whole[1].spent_s, 0.1 * whole[0].spent_s);
  const auto [ranges, spent_s] = tune(1.4 * needed_s);
  EXPECT_TRUE(ranges[0].finished()) << ranges[0].summary();
  EXPECT_FALSE(ranges[0].cut_short) << ranges[0].summary();
  EXPECT_EQ(ranges[0].undecided, 0u);
  EXPECT_LE(spent_s, 1.4 * needed_s);
  EXPECT_NEAR(ranges[0].spent_s + ranges[1].spent_s, spent_s, 1e-3);
}

TEST_F(TuneTogether, ARangeThatTheBudgetIsTooSmallForUsesAllOfItAndNoMore) {
  const double needed_s = tune(std::nullopt).second;
  for (const double part : {0.5, 0.8}) {
    const auto [ranges, spent_s] = tune(part * needed_s);
    EXPECT_TRUE(ranges[0].cut_short) << ranges[0].summary();
    EXPECT_GE(spent_s, 0.95 * part * needed_s);
    EXPECT_LE(spent_s, part * needed_s + 2);  // a race takes less than a second
  }
}

}  // namespace
}  // namespace xpuruntime
