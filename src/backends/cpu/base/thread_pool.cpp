#include "backends/cpu/base/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "core/environment_variable.h"
#include "core/usable_cores.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::cpu {
namespace {

constexpr int most_threads = 1024;
constexpr const char* threads_variable = "XPURUNTIME_NUM_THREADS";
// A worker that has just worked waits this many rounds before it sleeps: waking a sleeper costs more than a small op.
constexpr int spin_rounds = 4000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

/// Set while this thread runs tasks: what they start in turn stays on their thread.
thread_local bool in_task = false;

/// One call of parallel_tasks. Workers take indices until none is left.
struct Job {
  TaskRef body;
  std::int64_t count = 0;
  std::atomic<std::int64_t> next = 0;
  std::atomic<int> seats = 0;  // workers that may still join
  std::atomic<int> inside = 0;
  std::mutex mutex = {};
  std::exception_ptr error = {};

  void work() {
    in_task = true;
    for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
    in_task = false;
  }
};

class Pool {
 public:
  bool try_lock() { return busy_.try_lock(); }
  void unlock() { busy_.unlock(); }

  void run(Job& job, int threads) {
    grow(std::min(threads, most_threads) - 1);
    job.seats.store(threads - 1, std::memory_order_relaxed);
    job_.store(&job, std::memory_order_seq_cst);
    round_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) round_.notify_all();
    job.work();
    // From here nobody may join; those inside are waited for.
    job_.store(nullptr, std::memory_order_seq_cst);
    for (int i = 0; joining_.load(std::memory_order_seq_cst) > 0 || job.inside.load(std::memory_order_acquire) > 0;
         ++i) {
      pause_briefly();
      if (i > spin_rounds) std::this_thread::yield();
    }
  }

 private:
  // Where the system gives no more threads, those that are there do the work.
  void grow(int workers) {
    try {
      for (; workers_ < workers; ++workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
    }
  }

  void serve() {
    // A worker that starts in the middle of a round must not miss it.
    std::uint32_t seen = round_.load(std::memory_order_seq_cst) - 1;
    for (;;) {
      seen = wait_for_round(seen);
      joining_.fetch_add(1, std::memory_order_seq_cst);
      Job* job = job_.load(std::memory_order_seq_cst);
      const bool joined = job != nullptr && job->seats.fetch_sub(1, std::memory_order_relaxed) > 0;
      if (joined) job->inside.fetch_add(1, std::memory_order_relaxed);
      joining_.fetch_sub(1, std::memory_order_seq_cst);
      if (!joined) continue;
      job->work();
      job->inside.fetch_sub(1, std::memory_order_release);
    }
  }

  std::uint32_t wait_for_round(std::uint32_t seen) {
    for (int i = 0; i < spin_rounds; ++i) {
      const std::uint32_t now = round_.load(std::memory_order_acquire);
      if (now != seen) return now;
      pause_briefly();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    round_.wait(seen, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return round_.load(std::memory_order_seq_cst);
  }

  std::mutex busy_;
  int workers_ = 0;  // guarded by busy_
  alignas(64) std::atomic<std::uint32_t> round_ = 0;
  std::atomic<Job*> job_ = nullptr;
  alignas(64) std::atomic<int> joining_ = 0;
  std::atomic<int> sleepers_ = 0;
};

// Never destroyed: workers may outlive static objects. After a fork the child has no workers and gets a new pool.
std::atomic<Pool*>& current_pool() {
  static std::atomic<Pool*> pool = [] {
    pthread_atfork(nullptr, nullptr, [] { current_pool().store(new Pool, std::memory_order_release); });
    return new Pool;
  }();
  return pool;
}

int from_environment(const char* name) {
  const char* text = environment_variable(name);
  int value = 0;
  if (text == nullptr) return 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  // OMP_NUM_THREADS may be a list, one number a level: the first counts.
  const bool ends = *end == '\0' || (*end == ',' && std::string_view(name) != threads_variable);
  return error == std::errc() && ends && value > 0 && value <= most_threads ? value : 0;
}

void run_here(std::int64_t count, const TaskRef& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace

void check_thread_environment() {
  const char* text = environment_variable(threads_variable);
  if (text == nullptr || *text == '\0' || from_environment(threads_variable) != 0) return;
  fail(ErrorCode::invalid_argument, threads_variable,
       "'" + std::string(text).substr(0, 64) + "' is not a valid thread count; set 1 to " +
           std::to_string(most_threads) + ", or unset it");
}

int default_threads() {
  static const int threads = [] {
    for (const char* name : {threads_variable, "OMP_NUM_THREADS"}) {
      if (const int value = from_environment(name)) return value;
    }
    return std::min(usable_cores(), most_threads);
  }();
  return threads;
}

int threads_for(const Problem& problem) {
  if (!problem.limits.threads) return default_threads();
  return static_cast<int>(std::clamp<std::uint32_t>(*problem.limits.threads, 1, most_threads));
}

void parallel_tasks(std::int64_t count, int threads, TaskRef body) {
  threads = static_cast<int>(std::min<std::int64_t>(threads, count));
  if (threads <= 1 || in_task) return run_here(count, body);
  Pool& pool = *current_pool().load(std::memory_order_acquire);
  if (!pool.try_lock()) return run_here(count, body);
  const std::lock_guard lock(pool, std::adopt_lock);
  Job job{body, count};
  pool.run(job, threads);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace xpuruntime::cpu
