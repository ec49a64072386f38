#pragma once

#include <atomic>
#include <cstdint>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime::detail {

/// The calling thread's number. Unlike a std::thread::id, no later thread gets it again, in a forked child either.
std::uint64_t thread_number();

/// One maker at work on the thread that created the ticket, and the place where others wait for it. Waits are checked
/// against those of all caches of the process: one that could never end is an error instead of a deadlock.
class MakeTicket {
 public:
  MakeTicket() = default;
  MakeTicket(const MakeTicket&) = delete;
  MakeTicket& operator=(const MakeTicket&) = delete;

  /// Whether the calling thread is the one that makes.
  bool is_mine() const { return maker_ == thread_number(); }
  /// Whether its maker is a thread that this process, a forked child, does not have.
  bool is_orphan() const { return generation_ != process_generation() && !is_mine(); }

  /// Waits until finish(). Fails if the maker itself waits, over any number of threads, for the caller.
  void wait(std::unique_lock<Mutex>& cache_lock);

  /// Wakes all who wait. Called under the same lock that they wait with.
  void finish() noexcept;

 private:
  bool waits_for_caller() const;

  const std::uint64_t maker_ = thread_number();
  const std::int32_t generation_ = process_generation();
  std::atomic<int> finished_ = 0;
};

[[noreturn]] void fail_circular_make();

}  // namespace xpuruntime::detail
