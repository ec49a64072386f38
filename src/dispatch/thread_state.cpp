#include "dispatch/thread_state.h"

#include <utility>

namespace xpuruntime {

void TableEntry::fill(signature::Words words, std::shared_ptr<Prepared> made) {
  plan = made->plan->plan.get();
  record = made->record.get();
  workspace_bytes = made->record->decision.workspace_bytes;
  asynchronous = made->plan->driver->asynchronous();
  casts = !made->record->decision.casts.empty();
  prepared = std::move(made);
  signature = std::move(words);
}

void TableEntry::empty() {
  signature = {};
  prepared.reset();
}

TableEntry* ThreadState::find(const Call& call, std::uint64_t stamp) {
  const std::uint64_t hash = signature::hash(call, stamp);
  const Set& set = sets[set_of(hash)];
  for (std::size_t way = 0; way < ways; ++way) {
    TableEntry* entry = set.entries[way];
    if (set.tags[way] == tag_of(hash) && entry != nullptr && entry->signature.match(call, stamp)) {
      return last = last->next = entry;
    }
  }
  return nullptr;
}

TableEntry& ThreadState::insert(const Call& call, std::uint64_t stamp, std::shared_ptr<Prepared> prepared) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<TableEntry>());
    all_.back()->next = &start;
    free_.push_back(all_.back().get());
  }
  TableEntry* entry = free_.back();
  entry->fill(signature::Words(call, stamp), std::move(prepared));
  free_.pop_back();

  const std::uint64_t hash = signature::hash(call, stamp);
  Set& set = sets[set_of(hash)];
  // The one unused for longest goes. A running call may still use it, so it is only put aside here.
  if (set.entries[ways - 1] != nullptr) buried_.push_back(set.entries[ways - 1]);
  for (std::size_t way = ways - 1; way > 0; --way) {
    set.entries[way] = set.entries[way - 1];
    set.tags[way] = set.tags[way - 1];
  }
  set.entries[0] = entry;
  set.tags[0] = tag_of(hash);
  last = last->next = entry;
  return *entry;
}

void ThreadState::bury() {
  for (TableEntry* entry : buried_) {
    entry->empty();
    free_.push_back(entry);
  }
  buried_.clear();
}

void ThreadState::drop_table() {
  const std::lock_guard lock(release_mutex);
  kept_casts.clear();
  known_outputs = {};
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

void ThreadState::drop_entries() {
  last = &start;
  start.next = &start;
  for (Set& set : sets) set = {};
  buried_.clear();
  free_.clear();
  all_.clear();
}

}  // namespace xpuruntime
