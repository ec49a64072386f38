#include "tune/tick_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace xpuruntime {
namespace {

TEST(TickClock, OnlyGrows) {
  std::uint64_t last = read_ticks();
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t now = read_ticks();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(TickClock, GrowsAtAll) {
  const std::uint64_t before = read_ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GT(read_ticks(), before);
}

TEST(TickScale, StartsWhereItWasMade) {
  const std::uint64_t before = read_ticks();
  const TickScale scale;
  EXPECT_GE(scale.origin(), before);
  EXPECT_LE(scale.origin(), read_ticks());
}

TEST(TickScale, AgreesWithTheSteadyClock) {
  const TickScale scale;
  const double us_per_tick = scale.us_per_tick();
  ASSERT_GT(us_per_tick, 0);
  // Two readings can be torn apart by whoever shares the machine; the nearest of a few is not.
  double nearest = 1;
  for (int i = 0; i < 10 && nearest > 0.05; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::uint64_t ticks = read_ticks();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double measured = static_cast<double>(read_ticks() - ticks) * us_per_tick;
    const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - start;
    nearest = std::min(nearest, std::abs(measured / elapsed.count() - 1));
  }
  EXPECT_LE(nearest, 0.05);
}

}  // namespace
}  // namespace xpuruntime
