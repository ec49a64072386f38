#include "xpuruntime/cache/make_ticket.h"

#include <unordered_map>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::detail {
namespace {

/// Who waits for which maker, over all caches: makers may ask other caches, so a circle may pass through several.
struct WaitGraph {
  Mutex mutex;
  std::unordered_map<std::uint64_t, const MakeTicket*> waiting;
  std::int32_t generation = process_generation();
};

/// In a forked child nobody waits yet.
void forget_others(WaitGraph& graph) {
  if (graph.generation == process_generation()) return;
  graph.waiting.clear();
  graph.generation = process_generation();
}

// Never destroyed: caches that are static objects may outlive any other one.
WaitGraph& graph() {
  static WaitGraph& instance = *new WaitGraph;
  return instance;
}

/// Takes this thread out of the graph again, also when the wait itself fails.
struct LeaveGraph {
  ~LeaveGraph() {
    const std::lock_guard lock(graph().mutex);
    graph().waiting.erase(thread_number());
  }
};

}  // namespace

std::uint64_t thread_number() {
  static std::atomic<std::uint64_t> next = 1;
  thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

void MakeTicket::wait(std::unique_lock<Mutex>& cache_lock) {
  {
    const std::lock_guard lock(graph().mutex);
    forget_others(graph());
    if (waits_for_caller()) fail_circular_make();
    graph().waiting[thread_number()] = this;
  }
  const LeaveGraph leave;
  cache_lock.unlock();
  finished_.wait(0);
  cache_lock.lock();
}

void MakeTicket::finish() noexcept {
  {
    const std::lock_guard lock(graph().mutex);
    finished_ = 1;
  }
  finished_.notify_all();
}

bool MakeTicket::waits_for_caller() const {
  // A finished ticket ends the walk: its waiters are free although they have not woken up yet.
  for (const MakeTicket* ticket = this; ticket->finished_ == 0;) {
    if (ticket->is_mine()) return true;
    const auto next = graph().waiting.find(ticket->maker_);
    if (next == graph().waiting.end()) return false;
    ticket = next->second;
  }
  return false;
}

void fail_circular_make() {
  fail(ErrorCode::invalid_argument, "LRUCache::get_or_make",
       "making this value needs the same value, directly or through other makers; break the cycle by making the inner "
       "value under another key");
}

}  // namespace xpuruntime::detail
