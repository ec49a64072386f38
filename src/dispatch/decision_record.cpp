#include "dispatch/decision_record.h"

#include <exception>

namespace xpuruntime {

void RecordArchive::collect() {
  const double us_per_tick = scale.us_per_tick();
  const std::lock_guard lock(mutex_);
  const DecisionRecord* record = with_times_.exchange(nullptr, std::memory_order_acquire);
  while (record != nullptr) {
    const DecisionRecord* next = record->next_;
    // From here on it may be announced again: a time that is not taken below does that.
    record->announced_.exchange(false, std::memory_order_acq_rel);
    statistics.merge(record->decision.problem, record->decision.kernel, record->take_times(us_per_tick),
                     record->decision.kernel_version);
    record = next;
  }
}

DecisionRecord::~DecisionRecord() {
  const bool was_logged = shortest_.load(std::memory_order_relaxed) != std::numeric_limits<std::uint64_t>::max();
  if (!was_logged) return;
  try {
    archive_->collect();  // takes its times too, or waits until somebody has
  } catch (const std::exception&) {
    // No memory for them: times may be lost, a destructor may not throw.
  }
}

void DecisionRecord::announce() const {
  if (announced_.exchange(true, std::memory_order_acq_rel)) return;
  next_ = archive_->with_times_.load(std::memory_order_relaxed);
  while (
      !archive_->with_times_.compare_exchange_weak(next_, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void DecisionRecord::lower(std::uint64_t ticks) const {
  std::uint64_t seen = shortest_.load(std::memory_order_relaxed);
  while (ticks < seen && !shortest_.compare_exchange_weak(seen, ticks, std::memory_order_relaxed)) {
  }
}

void DecisionRecord::raise(std::uint64_t ticks) const {
  std::uint64_t seen = longest_.load(std::memory_order_relaxed);
  while (ticks > seen && !longest_.compare_exchange_weak(seen, ticks, std::memory_order_relaxed)) {
  }
}

void DecisionRecord::add_long_time(std::uint64_t ticks) const {
  {
    const std::lock_guard lock(mutex_);
    ++calls_;
    ticks_ += static_cast<double>(ticks);
  }
  announce();
}

void DecisionRecord::unpack() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t packed = packed_.exchange(0, std::memory_order_relaxed);
  calls_ += packed >> tick_bits;
  ticks_ += static_cast<double>(packed & (one_call - 1));
}

RunningStats DecisionRecord::take_times(double us_per_tick) const {
  unpack();
  const std::lock_guard lock(mutex_);
  const auto scaled = [&](const std::atomic<std::uint64_t>& ticks) {
    return static_cast<double>(ticks.load(std::memory_order_relaxed)) * us_per_tick;
  };
  const auto stats =
      RunningStats::from_sum(static_cast<std::int64_t>(std::exchange(calls_, 0)),
                             std::exchange(ticks_, 0) * us_per_tick, scaled(shortest_), scaled(longest_));
  return stats;
}

}  // namespace xpuruntime
