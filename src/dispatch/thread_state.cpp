#include "dispatch/thread_state.h"

#include <utility>

namespace xpuruntime {

void TableEntry::fill(std::shared_ptr<Prepared> made) {
  plan = made->plan->plan.get();
  record = made->record.get();
  workspace_bytes = made->record->decision.workspace_bytes;
  asynchronous = made->plan->driver->asynchronous();
  casts = !made->casts.empty();
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
  if (!asked.load(std::memory_order_relaxed) || depth.load(std::memory_order_acquire) != 0) return;
  if (last->prepared != nullptr) last_record_ = last->prepared->record;
  drop_entries();
  if (ring != nullptr) ring->unpin_overwritten();
}

void ThreadState::answer() {
  const std::lock_guard lock(release_mutex);
  asked.store(false, std::memory_order_relaxed);
}

void ThreadState::take_scope() {
  scope_id = scopes.empty() ? 0 : scopes.back().second->id;
  unlocked = scopes.empty() || !scopes.back().second->lock ? ~0u : 0u;
}

void ThreadState::drop_entries() {
  last = &start;
  start.next = &start;
  table.clear();
}

}  // namespace xpuruntime
