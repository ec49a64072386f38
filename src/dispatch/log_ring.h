#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace xpuruntime {

class DecisionRecord;

/// The calls one thread has logged: written by that thread without a lock, read by any. A reader that meets a slot in
/// the middle of a write leaves it out; that one is being overwritten anyway.
class LogRing {
 public:
  struct Item {
    const DecisionRecord* record = nullptr;
    std::uint64_t start_ticks = 0;
    std::uint64_t elapsed_ticks = 0;
    bool failed = false;
  };

  explicit LogRing(std::size_t capacity) : slots_(capacity) {}

  std::size_t capacity() const { return slots_.size(); }

  void push(const Item& item) {
    const std::uint64_t position = next_.load(std::memory_order_relaxed);
    Slot& slot = slots_[at_];
    if (++at_ == slots_.size()) at_ = 0;  // a division would cost as much as the rest
    // Each store is a release, so that none of them can be seen before the odd number that says "being written".
    slot.sequence.store(2 * position + 1, std::memory_order_relaxed);
    slot.record.store(item.record, std::memory_order_release);
    slot.start.store(item.start_ticks, std::memory_order_release);
    slot.elapsed.store(item.elapsed_ticks << 1 | (item.failed ? 1 : 0), std::memory_order_release);
    slot.sequence.store(2 * position + 2, std::memory_order_release);
    next_.store(position + 1, std::memory_order_release);
  }

  /// What is there and was not forgotten, oldest first.
  std::vector<Item> read() const;
  /// Leaves out all that was written so far.
  void forget() { forgotten_.store(next_.load(std::memory_order_acquire), std::memory_order_relaxed); }
  std::uint64_t dropped() const;
  /// Start of the oldest item that is still there, or the largest number if there is none.
  std::uint64_t oldest_start() const;

 private:
  struct Slot {
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<const DecisionRecord*> record{nullptr};
    std::atomic<std::uint64_t> start{0};
    std::atomic<std::uint64_t> elapsed{0};
  };

  std::vector<Slot> slots_;
  std::uint64_t first(std::uint64_t end) const;

  std::size_t at_ = 0;  // next_ modulo the capacity; the writer's own
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> forgotten_{0};
};

}  // namespace xpuruntime
