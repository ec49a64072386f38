#pragma once

#include <chrono>
#include <cstdint>

namespace xpuruntime {

/// The cheapest clock the processor has. Ticks only grow; TickScale says how long one is.
inline std::uint64_t read_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Turns ticks into microseconds by comparing both clocks between its making and the question.
class TickScale {
 public:
  TickScale() : start_(read_clocks()) {}

  std::uint64_t origin() const { return start_.ticks; }
  /// Waits until a millisecond has passed since the making, so that the ratio is good to a part in a thousand or
  /// better. It gets better as time passes: two answers need not be equal.
  double us_per_tick() const;

 private:
  struct Clocks {
    std::uint64_t ticks;
    std::chrono::steady_clock::time_point time;
  };

  static Clocks read_clocks();

  Clocks start_;
};

}  // namespace xpuruntime
