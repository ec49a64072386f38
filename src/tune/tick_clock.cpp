#include "tune/tick_clock.h"

#include <limits>
#include <thread>

namespace xpuruntime {

// The thread may lose its core between the two clocks: of several readings, the one whose ticks lie closest together.
TickScale::Clocks TickScale::read_clocks() {
  Clocks best{};
  std::uint64_t closest = std::numeric_limits<std::uint64_t>::max();
  for (int attempt = 0; attempt < 5; ++attempt) {
    const std::uint64_t before = read_ticks();
    const auto time = std::chrono::steady_clock::now();
    const std::uint64_t apart = read_ticks() - before;
    if (apart >= closest) continue;
    closest = apart;
    best = {before + apart / 2, time};
  }
  return best;
}

double TickScale::us_per_tick() const {
  std::this_thread::sleep_until(start_.time + std::chrono::milliseconds(1));
  const Clocks now = read_clocks();
  const std::chrono::duration<double, std::micro> elapsed = now.time - start_.time;
  return now.ticks == start_.ticks ? 0 : elapsed.count() / static_cast<double>(now.ticks - start_.ticks);
}

}  // namespace xpuruntime
