#include "xpuruntime/core/mutex.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "core/in_child.h"

namespace xpuruntime {
namespace {

/// Threads that run `step` until the end of the block.
class Busy {
 public:
  template <class Step>
  explicit Busy(Step step) {
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([this, step] {
        while (!stop_) step();
      });
    }
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

#if !defined(__SANITIZE_THREAD__)  // it does not follow forks of processes with threads

TEST(Mutex, IsFreeInAChildWhateverOtherThreadsDoWithIt) {
  std::array<Mutex, 4> mutexes;
  const Busy busy([&] {
    for (std::size_t i = 0; i + 1 < mutexes.size(); ++i) {
      const std::lock_guard outer(mutexes[i]);
      const std::lock_guard inner(mutexes[i + 1]);
    }
  });
  for (int i = 0; i < 200; ++i) {
    const int status = in_child([&] {
      for (Mutex& mutex : mutexes) const std::lock_guard lock(mutex);
      return true;
    });
    ASSERT_EQ(status, 0) << "fork " << i;
  }
}

TEST(Mutex, StaysWithTheThreadThatForks) {
  Mutex mine;
  Mutex other;
  const Busy busy([&] { const std::lock_guard lock(other); });
  for (int i = 0; i < 50; ++i) {
    std::unique_lock lock(mine);
    const int status = in_child([&] {
      lock.unlock();
      const std::lock_guard again(mine);
      const std::lock_guard both(other);
      return true;
    });
    ASSERT_EQ(status, 0) << "fork " << i;
  }
}

TEST(Mutex, LetsManyThreadsForkAtOnce) {
  Mutex mutex;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        const int status = in_child([&] {
          const std::lock_guard lock(mutex);
          return true;
        });
        if (status != 0) ++failed;
        const std::lock_guard lock(mutex);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST(LongMutex, IsFreeInAChildAlthoughAnotherThreadHoldsIt) {
  LongMutex mutex;
  std::atomic<bool> held = false;
  std::atomic<bool> done = false;
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    held = true;
    while (!done) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();
  EXPECT_EQ(in_child([&] {
              for (int i = 0; i < 2; ++i) const std::lock_guard lock(mutex);
              return true;
            }),
            0);
  done = true;
  holder.join();
}

TEST(ProcessGeneration, GrowsWithEachFork) {
  const std::int32_t here = process_generation();
  EXPECT_EQ(in_child([&] { return process_generation() == here + 1; }), 0);
  EXPECT_EQ(process_generation(), here);
}

#endif

template <class Lock>
int counted_by_four_threads() {
  Lock mutex;
  int count = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 2000; ++round) {
          const std::lock_guard lock(mutex);
          ++count;
        }
      });
    }
  }
  return count;
}

TEST(Mutex, LetsOneThreadInAtATime) { EXPECT_EQ(counted_by_four_threads<Mutex>(), 8000); }

TEST(LongMutex, LetsOneThreadInAtATime) { EXPECT_EQ(counted_by_four_threads<LongMutex>(), 8000); }

}  // namespace
}  // namespace xpuruntime
