#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "xpuruntime/select/decision.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

/// A decision and the times of its logged calls. Times are added from many threads at once, without a lock.
struct DecisionRecord : std::enable_shared_from_this<DecisionRecord> {
  explicit DecisionRecord(Decision made) : decision(std::move(made)) {}

  void add_time(std::uint64_t ticks) const {
    // Readers take a sum only when as many updates have ended as have begun.
    begun.fetch_add(1, std::memory_order_acquire);
    sum_ticks.fetch_add(ticks, std::memory_order_relaxed);
    if (ticks < min_ticks.load(std::memory_order_relaxed)) lower(min_ticks, ticks);
    if (ticks > max_ticks.load(std::memory_order_relaxed)) raise(max_ticks, ticks);
    ended.fetch_add(1, std::memory_order_release);
  }

  /// What was added since the last call; one caller at a time.
  RunningStats take_times(double us_per_tick) const;

  const Decision decision;
  mutable std::atomic<std::uint64_t> last_logged{0};  // start tick of the latest logged call; 0: never

 private:
  static void lower(std::atomic<std::uint64_t>& to, std::uint64_t value) {
    std::uint64_t seen = to.load(std::memory_order_relaxed);
    while (value < seen && !to.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  static void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) {
    std::uint64_t seen = to.load(std::memory_order_relaxed);
    while (value > seen && !to.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }

  mutable std::atomic<std::uint64_t> begun{0};
  mutable std::atomic<std::uint64_t> ended{0};
  mutable std::atomic<std::uint64_t> sum_ticks{0};
  mutable std::atomic<std::uint64_t> min_ticks{std::numeric_limits<std::uint64_t>::max()};
  mutable std::atomic<std::uint64_t> max_ticks{0};
  mutable std::uint64_t taken_count = 0;
  mutable std::uint64_t taken_sum = 0;
};

}  // namespace xpuruntime
