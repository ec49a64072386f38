#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

class DecisionRecord;

/// The calls one thread has logged: written by that thread without a lock, read by any. A reader that meets a slot in
/// the middle of a write leaves it out; that one is being overwritten anyway.
///
/// The ring owns the records that its slots name. A record is pinned before the first slot names it, and stays pinned
/// until the last slot that named it is overwritten or forgotten. Pins go under the lock that readers hold, so a record
/// that a reader finds is alive, whoever else has released it.
class LogRing {
 public:
  /// A call as it is written. Its writer holds the record.
  struct Call {
    const DecisionRecord* record = nullptr;
    std::uint64_t start_ticks = 0;
    std::uint64_t elapsed_ticks = 0;
    bool failed = false;
  };
  /// A call as it is read.
  struct Item {
    std::shared_ptr<const DecisionRecord> record = {};
    std::uint64_t start_ticks = 0;
    std::uint64_t elapsed_ticks = 0;
    bool failed = false;
  };

  explicit LogRing(std::size_t capacity) : slots_(capacity), pins_(16) {}

  std::size_t capacity() const { return slots_.size(); }

  void push(const Call& call) {
    const std::uint64_t position = next_.load(std::memory_order_relaxed);
    pin(call.record, position);
    Slot& slot = slots_[at_];
    if (++at_ == slots_.size()) at_ = 0;  // a division would cost as much as the rest
    // Each store is a release, so that none of them can be seen before the odd number that says "being written".
    slot.sequence.store(2 * position + 1, std::memory_order_relaxed);
    slot.record.store(call.record, std::memory_order_release);
    slot.start.store(call.start_ticks, std::memory_order_release);
    slot.elapsed.store(call.elapsed_ticks << 1 | (call.failed ? 1 : 0), std::memory_order_release);
    slot.sequence.store(2 * position + 2, std::memory_order_release);
    next_.store(position + 1, std::memory_order_release);
  }

  /// What is there and was not forgotten, oldest first.
  std::vector<Item> read() const;
  /// Leaves out all that was written so far.
  void forget();
  std::uint64_t dropped() const;
  /// Releases records that no slot names any more. Only the writer's thread may, or another while that is elsewhere.
  void unpin_overwritten();
  /// Records that the ring owns; for the writer's thread.
  std::size_t pinned() const { return pinned_; }

 private:
  struct Slot {
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<const DecisionRecord*> record{nullptr};
    std::atomic<std::uint64_t> start{0};
    std::atomic<std::uint64_t> elapsed{0};
  };
  struct Pin {
    const DecisionRecord* record = nullptr;  // null: free
    std::uint64_t last = 0;                  // the position that named it last
    std::shared_ptr<const DecisionRecord> owner = {};
  };
  using Pins = std::vector<Pin>;  // a hash table with room left, its size a power of two

  /// Where a record is pinned, or the free place where it would be.
  static std::size_t place_of(const Pins& pins, const DecisionRecord* record) {
    const std::size_t mask = pins.size() - 1;
    std::size_t place = (reinterpret_cast<std::uintptr_t>(record) * 0x9e3779b97f4a7c15ULL >> 32) & mask;
    while (pins[place].record != record && pins[place].record != nullptr) place = (place + 1) & mask;
    return place;
  }

  void pin(const DecisionRecord* record, std::uint64_t position) {
    Pin& known = pins_[place_of(pins_, record)];
    if (known.record == record) [[likely]]
      known.last = position;
    else
      pin_new(record, position);
  }
  void pin_new(const DecisionRecord* record, std::uint64_t position);
  std::uint64_t first(std::uint64_t end) const;

  std::vector<Slot> slots_;
  mutable Mutex mutex_;  // readers hold it; the writer, when it releases records
  Pins pins_;            // the writer's own
  std::size_t pinned_ = 0;
  std::size_t at_ = 0;  // next_ modulo the capacity; the writer's own
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> forgotten_{0};
};

}  // namespace xpuruntime
