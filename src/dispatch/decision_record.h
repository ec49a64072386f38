#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "tune/tick_clock.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/select/decision.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

class DecisionRecord;

/// Where the times of all records of a dispatcher end up. It owns no record: tables, caches and logs do, and a record
/// that dies hands its times in. Records share it, as entries of a log may outlive their dispatcher.
class RecordArchive {
 public:
  /// Takes the times that records have got since the last call.
  void collect();

  TickScale scale;
  Statistics statistics;

 private:
  friend class DecisionRecord;

  Mutex mutex_;  // held by who collects; a record that has times waits for it
  std::atomic<const DecisionRecord*> with_times_{nullptr};  // a stack: pushed to without a lock, taken whole
};

/// A decision and the times of its logged calls. Times are added from many threads at once, each with one atomic
/// addition.
class DecisionRecord : public std::enable_shared_from_this<DecisionRecord> {
 public:
  DecisionRecord(Decision made, std::shared_ptr<RecordArchive> archive)
      : decision(std::move(made)), archive_(std::move(archive)) {}
  ~DecisionRecord();
  DecisionRecord(const DecisionRecord&) = delete;
  DecisionRecord& operator=(const DecisionRecord&) = delete;

  void add_time(std::uint64_t ticks) const {
    if (ticks < shortest_.load(std::memory_order_relaxed)) lower(ticks);
    if (ticks > longest_.load(std::memory_order_relaxed)) raise(ticks);
    if (ticks > max_packed_ticks) [[unlikely]]
      return add_long_time(ticks);
    const std::uint64_t before = packed_.fetch_add(one_call | ticks, std::memory_order_relaxed);
    if (before - 1 >= unpack_at - 1) [[unlikely]]  // the first since they were taken, or too many
      before == 0 ? announce() : unpack();
  }

  /// What was added since the last call.
  RunningStats take_times(double us_per_tick) const;

  const Decision decision;

 private:
  // Calls in the upper 20 bits, the sum of their ticks in the lower 44: both change in one step. They are moved to wide
  // counters long before either can overflow.
  static constexpr int tick_bits = 44;
  static constexpr std::uint64_t one_call = std::uint64_t{1} << tick_bits;
  static constexpr std::uint64_t max_packed_ticks = std::uint64_t{1} << 30;
  static constexpr std::uint64_t unpack_at = one_call << 12;

  void lower(std::uint64_t ticks) const;
  void raise(std::uint64_t ticks) const;
  void add_long_time(std::uint64_t ticks) const;
  void unpack() const;
  void announce() const;

  mutable std::atomic<std::uint64_t> packed_{0};
  mutable std::atomic<std::uint64_t> shortest_{std::numeric_limits<std::uint64_t>::max()};
  mutable std::atomic<std::uint64_t> longest_{0};
  mutable Mutex mutex_;
  mutable std::uint64_t calls_ = 0;  // guarded, as is the sum
  mutable double ticks_ = 0;
  const std::shared_ptr<RecordArchive> archive_;
  mutable std::atomic<bool> announced_{false};    // is in the archive's stack
  mutable const DecisionRecord* next_ = nullptr;  // there; of the thread that announced this one

  friend class RecordArchive;
};

}  // namespace xpuruntime
