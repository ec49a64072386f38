#include "xpuruntime/cache/make_ticket.h"

#include <unordered_map>

#include "xpuruntime/core/error.h"

namespace xpuruntime::detail {
namespace {

/// Who waits for which maker, over all caches: makers may ask other caches, so a circle may pass through several.
struct WaitGraph {
  std::mutex mutex;
  std::unordered_map<std::thread::id, const MakeTicket*> waiting;
};

// Never destroyed: caches that are static objects may outlive any other one.
WaitGraph& graph() {
  static WaitGraph& instance = *new WaitGraph;
  return instance;
}

/// Takes this thread out of the graph again, also when the wait itself fails.
struct LeaveGraph {
  ~LeaveGraph() {
    const std::lock_guard lock(graph().mutex);
    graph().waiting.erase(std::this_thread::get_id());
  }
};

}  // namespace

void MakeTicket::wait(std::unique_lock<std::mutex>& cache_lock) {
  {
    const std::lock_guard lock(graph().mutex);
    if (waits_for_caller()) fail_circular_make();
    graph().waiting[std::this_thread::get_id()] = this;
  }
  const LeaveGraph leave;
  done_.wait(cache_lock, [this] { return finished_; });
}

void MakeTicket::finish() noexcept {
  {
    const std::lock_guard lock(graph().mutex);
    finished_ = true;
  }
  done_.notify_all();
}

bool MakeTicket::waits_for_caller() const {
  // A finished ticket ends the walk: its waiters are free although they have not woken up yet.
  for (const MakeTicket* ticket = this; !ticket->finished_;) {
    if (ticket->is_mine()) return true;
    const auto next = graph().waiting.find(ticket->maker_);
    if (next == graph().waiting.end()) return false;
    ticket = next->second;
  }
  return false;
}

void fail_circular_make() {
  fail(ErrorCode::invalid_argument, "LRUCache::get_or_make",
       "the maker of a value asks, itself or through other makers, for that same value; break the circle by making the "
       "inner value under another key");
}

}  // namespace xpuruntime::detail
