#include "dispatch/log_ring.h"

#include <algorithm>
#include <utility>

#include "dispatch/decision_record.h"

namespace xpuruntime {

// The first position before `end` that is neither overwritten nor forgotten.
std::uint64_t LogRing::first(std::uint64_t end) const {
  const std::uint64_t kept = end > slots_.size() ? end - slots_.size() : 0;
  return std::max(kept, forgotten_.load(std::memory_order_relaxed));
}

// The slots name at most as many records as there are slots; a quarter more may wait until it is worth looking.
void LogRing::pin_new(const DecisionRecord* record, std::uint64_t position) {
  if (4 * (pinned_ + 1) > 3 * pins_.size() || pinned_ > slots_.size() + slots_.size() / 4) unpin_overwritten();
  pins_[place_of(pins_, record)] = {record, position, record->shared_from_this()};
  ++pinned_;
}

void LogRing::unpin_overwritten() {
  Pins pins;  // the old ones at last, which die after the lock is released
  const std::lock_guard lock(mutex_);
  const std::uint64_t begin = first(next_.load(std::memory_order_relaxed));
  const auto is_named = [&](const Pin& pin) { return pin.record != nullptr && pin.last >= begin; };
  const auto named = static_cast<std::size_t>(std::count_if(pins_.begin(), pins_.end(), is_named));
  std::size_t size = 16;
  while (size < 2 * (named + 1)) size *= 2;
  pins.resize(size);
  for (Pin& pin : pins_) {
    if (is_named(pin)) pins[place_of(pins, pin.record)] = std::exchange(pin, {});
  }
  pins_.swap(pins);
  pinned_ = named;
}

std::vector<LogRing::Item> LogRing::read() const {
  std::vector<Item> items;
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  for (std::uint64_t position = first(end); position < end; ++position) {
    const Slot& slot = slots_[position % slots_.size()];
    if (slot.sequence.load(std::memory_order_acquire) != 2 * position + 2) continue;
    const DecisionRecord* record = slot.record.load(std::memory_order_acquire);
    const std::uint64_t start = slot.start.load(std::memory_order_acquire);
    const std::uint64_t elapsed = slot.elapsed.load(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) != 2 * position + 2) continue;
    items.push_back({record->shared_from_this(), start, elapsed >> 1, (elapsed & 1) != 0});
  }
  return items;
}

void LogRing::forget() {
  const std::lock_guard lock(mutex_);
  forgotten_.store(next_.load(std::memory_order_acquire), std::memory_order_relaxed);
}

std::uint64_t LogRing::dropped() const {
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  return first(end) - forgotten_.load(std::memory_order_relaxed);
}

}  // namespace xpuruntime
