#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {

/// Calls body(slot, task) for each task, on as many threads as there are slots. No two calls with the same slot run at
/// the same time, so each slot can have scratch memory of its own.
template <class Body>
void tasks_in_slots(std::int64_t tasks, int slots, const Body& body) {
  std::atomic<std::int64_t> next = 0;
  parallel_tasks(std::min<std::int64_t>(slots, tasks), slots, [&](std::int64_t slot) {
    for (std::int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(slot, task);
  });
}

}  // namespace xpuruntime::cpu
