#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "dispatch/decision_record.h"
#include "dispatch/log_ring.h"
#include "dispatch/prepared.h"
#include "dispatch/signature.h"
#include "xpuruntime/dispatch/dispatcher.h"

namespace xpuruntime {

/// One row of a thread's decision table: a signature and what to run for it.
struct TableEntry {
  TableEntry(signature::Words words, std::shared_ptr<Prepared> made)
      : plan(made->plan->plan.get()),
        record(made->record.get()),
        workspace_bytes(made->record->decision.workspace_bytes),
        asynchronous(made->plan->driver->asynchronous()),
        signature(std::move(words)),
        prepared(std::move(made)) {}

  // What a warm call reads lies together.
  const Plan* plan;
  const DecisionRecord* record;
  std::uint64_t workspace_bytes;
  bool asynchronous;
  signature::Words signature;
  std::shared_ptr<Prepared> prepared;
};

/// What one thread keeps for one dispatcher: its decision table, its scope and its log. Only that thread touches the
/// table.
struct ThreadState {
  static constexpr std::size_t ways = 4;
  static constexpr std::size_t set_count = 512;

  struct alignas(64) Set {
    std::uint32_t tags[ways] = {};
    TableEntry* entries[ways] = {};
  };

  explicit ThreadState(std::uint64_t thread_number) : sets(set_count), thread(thread_number) {}
  ~ThreadState() { drop_table(); }

  static std::size_t set_of(std::uint64_t hash) { return hash % set_count; }
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

  TableEntry* find(std::uint64_t hash, const Call& call, std::uint64_t head, std::uint64_t stamp) const {
    const Set& set = sets[set_of(hash)];
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t way = 0; way < ways; ++way) {
      TableEntry* entry = set.entries[way];
      if (set.tags[way] == tag && entry != nullptr && entry->signature.match(call, head, stamp)) return entry;
    }
    return nullptr;
  }

  TableEntry& insert(std::uint64_t hash, std::unique_ptr<TableEntry> entry);
  void drop_table();
  /// Entries that were pushed out while a call of this thread still ran one of them.
  void bury() { buried.clear(); }

  std::vector<Set> sets;
  std::vector<std::unique_ptr<TableEntry>> buried;
  int depth = 0;               // calls of this thread that are running: a kernel may dispatch
  std::uint32_t scope_id = 0;  // 0: the dispatcher's base scope
  ScopePtr scope;
  std::shared_ptr<LogRing> ring;
  std::uint64_t thread;
};

}  // namespace xpuruntime
