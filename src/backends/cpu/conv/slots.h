#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {

/// Calls body(slot, i) for all i < count. Calls with the same slot follow each other, so that a slot's scratch memory
/// serves them all; there are `threads` slots. Each thread takes `step` of the i at a time.
template <class Body>
void run_in_slots(std::int64_t count, std::int64_t step, int threads, const Body& body) {
  std::atomic<std::int64_t> next = 0;
  const std::int64_t slots = std::min<std::int64_t>(threads, (count + step - 1) / step);
  parallel_tasks(slots, threads, [&](std::int64_t slot) {
    for (std::int64_t i; (i = next.fetch_add(step, std::memory_order_relaxed)) < count;) {
      for (const std::int64_t end = std::min(i + step, count); i < end; ++i) body(slot, i);
    }
  });
}

}  // namespace xpuruntime::cpu
