#pragma once

#include <atomic>
#include <cstdint>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

/// Around calls of libraries with locks of their own, which a child may not find locked by a thread that it lacks: a
/// fork waits until no other thread is in such a block, as it does for a Mutex.
class ForkHold {
 public:
  ForkHold();
  ~ForkHold();
  ForkHold(const ForkHold&) = delete;
  ForkHold& operator=(const ForkHold&) = delete;
};

/// How many forks of this process went on although another thread still held a Mutex: none should.
std::int32_t forks_given_up();

/// For what a fork breaks, such as a vendor's driver: tells a process that started it from the children of one that
/// did.
class ForkGuard {
 public:
  /// Starts it in this process, unless one before a fork did. Returns whether it may be used here.
  bool start() {
    std::int32_t started = 0;
    const std::int32_t here = process_generation();
    return started_in_.compare_exchange_strong(started, here) || started == here;
  }
  /// Whether it was started before a fork, and so is broken here.
  bool broken() const {
    const std::int32_t started = started_in_.load(std::memory_order_relaxed);
    return started != 0 && started != process_generation();
  }

 private:
  std::atomic<std::int32_t> started_in_ = 0;
};

}  // namespace xpuruntime
