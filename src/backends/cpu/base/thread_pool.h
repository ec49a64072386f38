#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "xpuruntime/core/problem.h"

// The one pool of threads of the CPU backend. Kernels cut their work into tasks; libraries run on one thread inside a
// task. So however many kernels and libraries there are, no more threads work for one call than were asked for.

namespace xpuruntime::cpu {

/// How many threads a call may use where none is set: XPURUNTIME_NUM_THREADS, else OMP_NUM_THREADS, else the cores this
/// process may run on. Read once.
int default_threads();

/// Fails where XPURUNTIME_NUM_THREADS is set to an invalid number of threads.
void check_thread_environment();

/// How many threads a plan for this problem may use: its limit, else the default.
int threads_for(const Problem& problem);

/// A borrowed function of one number; lives as long as the call it is passed to.
class TaskRef {
 public:
  template <class Body>
  requires(!std::is_same_v<std::remove_cvref_t<Body>, TaskRef>) TaskRef(const Body& body)
      : body_(&body), call_([](const void* self, std::int64_t i) { (*static_cast<const Body*>(self))(i); }) {}
  void operator()(std::int64_t index) const { call_(body_, index); }

 private:
  const void* body_;
  void (*call_)(const void*, std::int64_t);
};

/// Calls body(0) ... body(count - 1), each once, on the caller's thread and up to threads - 1 others, and returns when
/// all are done. Which thread takes which task is left open. Inside a task, and while another thread has the pool, the
/// tasks run on the caller's thread alone. The first exception of a task is thrown here, after all have ended.
void parallel_tasks(std::int64_t count, int threads, TaskRef body);

/// Cuts [0, count) into ranges of at least `grain` and calls body(begin, end) for each, as parallel_tasks does. The
/// cuts depend on the thread count: an element's result must not depend on where they fall.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, int threads, const Body& body) {
  if (count <= 0) return;
  const std::int64_t ranges = std::min<std::int64_t>(threads, count / std::max<std::int64_t>(grain, 1));
  if (ranges <= 1) return body(std::int64_t{0}, count);
  parallel_tasks(ranges, threads, [&](std::int64_t i) {
    // The first count % ranges ranges are one longer.
    const std::int64_t size = count / ranges, longer = count % ranges;
    const std::int64_t begin = i * size + std::min(i, longer);
    body(begin, begin + size + (i < longer ? 1 : 0));
  });
}

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
