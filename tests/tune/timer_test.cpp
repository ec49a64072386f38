#include "tune/timer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace xpuruntime {
namespace {

/// A clock that shows one reading after the other, and the last for ever.
Stopwatch::Clock shows(std::vector<double> readings) {
  return [readings = std::move(readings), next = std::size_t{0}]() mutable {
    return readings[std::min(next++, readings.size() - 1)];
  };
}

std::optional<double> timed(const std::vector<double>& readings, int* discarded = nullptr) {
  const Stopwatch::Clock clock = shows(readings);
  BatchTimer timer(clock);
  Status status;
  const auto took = timer.time([] { return Status(); }, status);
  if (discarded != nullptr) *discarded = timer.discarded();
  return took;
}

TEST(SteadyClock, GoesForward) {
  const double first = steady_us();
  EXPECT_GE(steady_us(), first);
}

TEST(BatchTimer, TakesTheTimeOfABatch) {
  EXPECT_EQ(timed({100, 350}), 250);
  EXPECT_EQ(timed({100, 100}), 0);
}

TEST(BatchTimer, ThrowsAwayReadingsThatCannotBe) {
  for (const double end : {99.0, -1e12, std::nan(""), HUGE_VAL, 100 + 3.7e9}) {
    int discarded = 0;
    EXPECT_FALSE(timed({100, end}, &discarded)) << end;
    EXPECT_EQ(discarded, 1);
  }
  EXPECT_FALSE(timed({std::nan(""), 100}));
}

TEST(BatchTimer, PassesOnAFailure) {
  const Stopwatch::Clock clock = shows({1, 2});
  BatchTimer timer(clock);
  Status status;
  timer.time([] { return Status(ErrorCode::device_error, "no"); }, status);
  EXPECT_EQ(status.message(), "no");
}

TEST(Stopwatch, AddsUpWhatIsSane) {
  const Stopwatch::Clock clock = shows({0, 10, 30});
  Stopwatch watch(clock);
  EXPECT_EQ(watch.elapsed_us(), 10);
  EXPECT_EQ(watch.elapsed_us(), 30);
  EXPECT_EQ(watch.elapsed_us(), 30);
}

TEST(Stopwatch, LeavesOutStepsThatCannotBe) {
  const Stopwatch::Clock clock = shows({1000, 1010, 3, 8, std::nan(""), 9, 1e18, 1e18});
  Stopwatch watch(clock);
  EXPECT_EQ(watch.elapsed_us(), 10);
  EXPECT_EQ(watch.elapsed_us(), 10);  // back to 3
  EXPECT_EQ(watch.elapsed_us(), 15);
  EXPECT_EQ(watch.elapsed_us(), 15);  // not a number
  EXPECT_EQ(watch.elapsed_us(), 16);
  EXPECT_EQ(watch.elapsed_us(), 16);  // an age ahead
  EXPECT_EQ(watch.elapsed_us(), 16);
}

}  // namespace
}  // namespace xpuruntime
