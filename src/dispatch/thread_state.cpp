#include "dispatch/thread_state.h"

#include <algorithm>
#include <utility>

#include "registry/copying_kernel.h"

namespace xpuruntime {

void TableEntry::fill(std::shared_ptr<Prepared> made) {
  plan = made->plan->plan.get();
  record = made->record.get();
  asynchronous = made->plan->driver->asynchronous();
  plain = !asynchronous && made->record->decision.workspace_bytes == 0;
  casts = !made->casts.empty();
  sets_device = plan->sets_device();
  prepared = std::move(made);
}

void TableEntry::empty() {
  signature = {};
  prepared.reset();
}

TableEntry* ThreadState::find(const Call& call, std::uint64_t stamp) {
  TableEntry* entry = table.find(call, stamp);
  return entry == nullptr ? nullptr : last = last->next = entry;
}

TableEntry& ThreadState::insert(const Call& call, std::uint64_t stamp, std::shared_ptr<Prepared> prepared) {
  TableEntry& entry = table.insert(call, stamp);
  entry.fill(std::move(prepared));
  if (entry.next == nullptr) entry.next = &start;
  last = last->next = &entry;
  return entry;
}

void ThreadState::release_casts() noexcept {
  kept_casts.clear();
  cast_frames.release_idle();
}

void ThreadState::drop_table() {
  const std::lock_guard lock(release_mutex);
  kept_casts.clear();
  cast_frames.clear();
  known_outputs.clear();
  drop_entries();
}

void ThreadState::release_if_idle() {
  const std::lock_guard lock(release_mutex);
  const bool was_asked = (asked.load(std::memory_order_relaxed) & asks_if_idle) != 0;
  if (!was_asked || depth.load(std::memory_order_acquire) != 0) return;
  if (last->prepared != nullptr) last_record_ = last->prepared->record;
  drop_entries();
  if (ring != nullptr) ring->unpin_overwritten();
}

void ThreadState::retire(const Kernel* kernel) {
  const std::lock_guard lock(release_mutex);
  if (std::find(retired_.begin(), retired_.end(), kernel) == retired_.end()) retired_.push_back(kernel);
  asked.fetch_or(has_retired, std::memory_order_relaxed);
}

void ThreadState::answer() {
  std::vector<const Kernel*> kernels;
  {
    const std::lock_guard lock(release_mutex);
    asked.store(0, std::memory_order_relaxed);
    kernels.swap(retired_);
  }
  if (!kernels.empty()) drop_entries_of(kernels);  // plans may end: with no lock held
}

void ThreadState::take_scope() {
  scope_id = scopes.empty() ? 0 : scopes.back().second->id;
  unlocked = scopes.empty() || !scopes.back().second->lock ? ~0u : 0u;
}

// On all problems: those that it did not fail on are found among the decisions that all threads share.
void ThreadState::drop_entries_of(const std::vector<const Kernel*>& kernels) {
  const bool outermost = depth == 1;  // else a call that is running may still need what it found
  table.for_each([&](TableEntry& entry) {
    if (entry.prepared == nullptr) return;
    const Kernel* kernel = registered_kernel(entry.prepared->plan->kernel).get();
    if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) return;
    entry.signature = {};
    if (outermost) entry.empty();
  });
}

std::uint64_t ThreadState::next_table_id() {
  static std::atomic<std::uint64_t> next{1};  // 0: no table's
  return next.fetch_add(1, std::memory_order_relaxed);
}

void ThreadState::drop_entries() {
  table_id = next_table_id();
  last = &start;
  start.next = &start;
  table.clear();
}

}  // namespace xpuruntime
