#include "dispatch/decision_record.h"

namespace xpuruntime {

RunningStats DecisionRecord::take_times(double us_per_tick) const {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  do {
    count = ended.load(std::memory_order_acquire);
    sum = sum_ticks.load(std::memory_order_acquire);
  } while (begun.load(std::memory_order_acquire) != count);
  const auto fresh = static_cast<std::int64_t>(count - taken_count);
  const double fresh_us = static_cast<double>(sum - taken_sum) * us_per_tick;
  taken_count = count;
  taken_sum = sum;
  return RunningStats::from_sum(fresh, fresh_us,
                                static_cast<double>(min_ticks.load(std::memory_order_relaxed)) * us_per_tick,
                                static_cast<double>(max_ticks.load(std::memory_order_relaxed)) * us_per_tick);
}

}  // namespace xpuruntime
