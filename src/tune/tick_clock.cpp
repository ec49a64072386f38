#include "tune/tick_clock.h"

#include <thread>

namespace xpuruntime {

TickScale::TickScale() : ticks_(read_ticks()), time_(std::chrono::steady_clock::now()) {}

double TickScale::us_per_tick() const {
  std::this_thread::sleep_until(time_ + std::chrono::milliseconds(1));
  const std::uint64_t ticks = read_ticks() - ticks_;
  const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - time_;
  return ticks == 0 ? 0 : elapsed.count() / static_cast<double>(ticks);
}

}  // namespace xpuruntime
