#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch/thread_state.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

/// The thread states of one dispatcher. Outlives it in the hands of threads that have not ended yet.
class ThreadRegistry {
 public:
  std::shared_ptr<ThreadState> add();
  /// A thread has ended: its table goes, here and now, so that no plan outlives its device.
  void remove(const std::shared_ptr<ThreadState>& state);
  /// The dispatcher ends: every table goes.
  void clear();
  /// Empties the tables of threads that have made no call since this was called last.
  void release_idle();
  /// Every thread decides anew, at its next call, what this kernel of the registry runs.
  void retire(const Kernel* kernel);

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<ThreadState>> states_;
  Mutex release_mutex_;  // one release at a time
};

/// This thread's state for the dispatcher `id`, made on first use.
ThreadState& state_of_this_thread(std::uint64_t id, const std::shared_ptr<ThreadRegistry>& registry);

/// Two words per thread that lead to the table used last. Not at a fixed offset from the thread pointer (initial-exec):
/// little such storage is left for libraries that a process loads late, and where it is used up they do not load.
struct LastState {
  std::uint64_t dispatcher_id = 0;
  ThreadState* state = nullptr;
};
extern constinit thread_local LastState last_state;

}  // namespace xpuruntime
