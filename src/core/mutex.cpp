#include "xpuruntime/core/mutex.h"

#include <pthread.h>

#include <array>
#include <chrono>
#include <thread>

#include "core/fork_guard.h"

namespace xpuruntime {
namespace {

/// How many threads hold a Mutex, counted in several places so that they do not disturb each other.
struct alignas(64) Shard {
  std::atomic<std::int32_t> inside = 0;
};

constinit std::array<Shard, 64> shards;
constinit std::atomic<std::int32_t> forking = 0;  // threads that fork at this moment
constinit std::atomic<std::int32_t> generation = 1;
constinit std::atomic<std::int32_t> given_up = 0;

struct Thread {
  Shard* shard = nullptr;  // given at its first lock
  int held = 0;
};
constinit thread_local Thread this_thread;

void enter(Thread& thread) {
  static constinit std::atomic<unsigned> next = 0;
  if (thread.shard == nullptr) thread.shard = &shards[next.fetch_add(1, std::memory_order_relaxed) % shards.size()];
  for (;;) {
    thread.shard->inside.fetch_add(1, std::memory_order_seq_cst);
    const std::int32_t forks = forking.load(std::memory_order_seq_cst);
    if (forks == 0) return;
    thread.shard->inside.fetch_sub(1, std::memory_order_seq_cst);
    forking.wait(forks, std::memory_order_seq_cst);
  }
}

std::int32_t own_share(const Shard& shard) { return this_thread.held > 0 && &shard == this_thread.shard ? 1 : 0; }

// A thread that comes in from now on sees that a fork is under way and turns back, so a place seen empty once stays so.
void before_fork() {
  constexpr auto patience = std::chrono::seconds(5);
  forking.fetch_add(1, std::memory_order_seq_cst);
  const auto end = std::chrono::steady_clock::now() + patience;
  for (const Shard& shard : shards) {
    while (shard.inside.load(std::memory_order_seq_cst) > own_share(shard)) {
      if (std::chrono::steady_clock::now() > end) {
        given_up.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      std::this_thread::yield();
    }
  }
}

void after_fork_in_parent() {
  forking.fetch_sub(1, std::memory_order_seq_cst);
  forking.notify_all();
}

void after_fork_in_child() {
  for (Shard& shard : shards) shard.inside.store(own_share(shard), std::memory_order_relaxed);
  forking.store(0, std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_relaxed);
}

[[maybe_unused]] const int handlers = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

void hold_forks() {
  Thread& thread = this_thread;
  if (thread.held == 0) enter(thread);
  ++thread.held;
}

void let_forks_go() {
  Thread& thread = this_thread;
  if (--thread.held == 0) thread.shard->inside.fetch_sub(1, std::memory_order_release);
}

}  // namespace

ForkHold::ForkHold() { hold_forks(); }
ForkHold::~ForkHold() { let_forks_go(); }

void Mutex::lock() {
  hold_forks();
  mutex_.lock();
}

void Mutex::unlock() {
  mutex_.unlock();
  let_forks_go();
}

void LongMutex::lock() {
  const std::int32_t mine = process_generation();
  for (;;) {
    std::int32_t holder = holder_.load(std::memory_order_relaxed);
    if (holder == mine) {
      holder_.wait(holder, std::memory_order_relaxed);
    } else if (holder_.compare_exchange_weak(holder, mine, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
  }
}

void LongMutex::unlock() {
  holder_.store(0, std::memory_order_release);
  holder_.notify_one();
}

std::int32_t forks_given_up() { return given_up.load(std::memory_order_relaxed); }

std::int32_t process_generation() { return generation.load(std::memory_order_relaxed); }

}  // namespace xpuruntime

// A static variable in a function is made by the first thread that comes, and the others wait. A forked child would
// wait for ever for a thread that it lacks, so forks wait too: the linker leads what the compiler calls before and
// after through here (--wrap in cmake/layers.cmake).
extern "C" {
int real_acquire(void* guard) asm("__real___cxa_guard_acquire");
void real_release(void* guard) asm("__real___cxa_guard_release");
void real_abort(void* guard) asm("__real___cxa_guard_abort");
int wrapped_acquire(void* guard) asm("__wrap___cxa_guard_acquire");
void wrapped_release(void* guard) asm("__wrap___cxa_guard_release");
void wrapped_abort(void* guard) asm("__wrap___cxa_guard_abort");

int wrapped_acquire(void* guard) {
  xpuruntime::hold_forks();
  const int is_ours_to_make = real_acquire(guard);
  if (is_ours_to_make == 0) xpuruntime::let_forks_go();
  return is_ours_to_make;
}

void wrapped_release(void* guard) {
  real_release(guard);
  xpuruntime::let_forks_go();
}

void wrapped_abort(void* guard) {
  real_abort(guard);
  xpuruntime::let_forks_go();
}
}
