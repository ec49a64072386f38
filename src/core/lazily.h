#pragma once

#include <atomic>
#include <mutex>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

/// A value that is made when it is first asked for, by one thread while others wait, and stays. A maker that throws is
/// tried again the next time.
template <class Value>
class Lazily {
 public:
  template <class Make>
  Value& get(Make&& make) const {
    if (!made_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      if (!made_.load(std::memory_order_relaxed)) {
        value_ = make();
        made_.store(true, std::memory_order_release);
      }
    }
    return value_;
  }

 private:
  mutable Value value_ = {};
  mutable LongMutex mutex_;
  mutable std::atomic<bool> made_ = false;
};

}  // namespace xpuruntime
