#include "dispatch/log_ring.h"

#include <algorithm>
#include <limits>

namespace xpuruntime {

// The first position before `end` that is neither overwritten nor forgotten.
std::uint64_t LogRing::first(std::uint64_t end) const {
  const std::uint64_t kept = end > slots_.size() ? end - slots_.size() : 0;
  return std::max(kept, forgotten_.load(std::memory_order_relaxed));
}

std::vector<LogRing::Item> LogRing::read() const {
  std::vector<Item> items;
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  for (std::uint64_t position = first(end); position < end; ++position) {
    const Slot& slot = slots_[position % slots_.size()];
    if (slot.sequence.load(std::memory_order_acquire) != 2 * position + 2) continue;
    Item item;
    item.record = slot.record.load(std::memory_order_acquire);
    item.start_ticks = slot.start.load(std::memory_order_acquire);
    const std::uint64_t elapsed = slot.elapsed.load(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) != 2 * position + 2) continue;
    item.elapsed_ticks = elapsed >> 1;
    item.failed = (elapsed & 1) != 0;
    items.push_back(item);
  }
  return items;
}

std::uint64_t LogRing::dropped() const {
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  return first(end) - forgotten_.load(std::memory_order_relaxed);
}

std::uint64_t LogRing::oldest_start() const {
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  const std::uint64_t begin = first(end);
  if (begin == end) return std::numeric_limits<std::uint64_t>::max();
  return slots_[begin % slots_.size()].start.load(std::memory_order_relaxed);
}

}  // namespace xpuruntime
