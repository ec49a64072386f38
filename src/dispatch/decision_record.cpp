#include "dispatch/decision_record.h"

namespace xpuruntime {

void RecordArchive::collect() {
  const double us_per_tick = scale.us_per_tick();
  const std::lock_guard lock(mutex_);
  for (const DecisionRecord* record : records_) {
    statistics.merge(record->decision.problem, record->decision.kernel, record->take_times(us_per_tick),
                     record->decision.kernel_version);
  }
}

DecisionRecord::DecisionRecord(Decision made, std::shared_ptr<RecordArchive> archive)
    : decision(std::move(made)), archive_(std::move(archive)) {
  const std::lock_guard lock(archive_->mutex_);
  place_ = archive_->records_.insert(archive_->records_.end(), this);
}

DecisionRecord::~DecisionRecord() {
  {
    const std::lock_guard lock(archive_->mutex_);
    archive_->records_.erase(place_);
  }
  if (longest_.load(std::memory_order_relaxed) == 0) return;  // never logged
  try {
    const RunningStats times = take_times(archive_->scale.us_per_tick());
    archive_->statistics.merge(decision.problem, decision.kernel, times, decision.kernel_version);
  } catch (...) {
    // No memory for them: times may be lost, a destructor may not throw.
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
  const std::lock_guard lock(mutex_);
  ++calls_;
  ticks_ += static_cast<double>(ticks);
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
