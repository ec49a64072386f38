#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace xpuruntime::detail {

/// One maker at work on the thread that created the ticket, and the place where others wait for it. Waits are checked
/// against those of all caches of the process: one that could never end is an error instead of a deadlock.
class MakeTicket {
 public:
  MakeTicket() = default;
  MakeTicket(const MakeTicket&) = delete;
  MakeTicket& operator=(const MakeTicket&) = delete;

  /// Whether the calling thread is the one that makes.
  bool is_mine() const { return maker_ == std::this_thread::get_id(); }

  /// Waits until finish(). Fails if the maker itself waits, over any number of threads, for the caller.
  void wait(std::unique_lock<std::mutex>& cache_lock);

  /// Wakes all who wait. Called under the same lock that they wait with.
  void finish() noexcept;

 private:
  bool waits_for_caller() const;

  const std::thread::id maker_ = std::this_thread::get_id();
  bool finished_ = false;  // written under the cache's lock and the graph's, so either is enough to read it
  std::condition_variable done_;
};

[[noreturn]] void fail_circular_make();

}  // namespace xpuruntime::detail
