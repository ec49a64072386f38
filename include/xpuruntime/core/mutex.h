#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace xpuruntime {

/// A mutex that no forked child ever finds locked by a thread that it does not have: a fork waits until no other thread
/// holds one. So what is done under it must be short, and must not wait for anything that the forking thread may hold,
/// such as Python's GIL. Where one is held for seconds, the fork goes on without waiting any longer.
class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock();
  void unlock();

 private:
  std::mutex mutex_;
};

/// For what takes long, where forks do not wait: a child finds it free unless its own thread holds it. First come,
/// first served is not promised.
class LongMutex {
 public:
  LongMutex() = default;
  LongMutex(const LongMutex&) = delete;
  LongMutex& operator=(const LongMutex&) = delete;

  void lock();
  void unlock();

 private:
  std::atomic<std::int32_t> holder_ = 0;  // the process generation that locked it; 0: free
};

/// Counts the forks that led to this process, from 1: what another thread was at when this has changed will never end.
std::int32_t process_generation();

}  // namespace xpuruntime
