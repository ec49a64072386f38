#pragma once

#include <cstdint>
#include <memory>

#include "dispatch/signature.h"

namespace xpuruntime {

class DecisionRecord;
class Plan;
struct Prepared;

/// A signature and what to run for it: one row of a thread's decision table, or a cast that belongs to a decision.
struct alignas(64) TableEntry {
  void fill(std::shared_ptr<Prepared> made);
  /// Matches nothing from now on and lets its plan go.
  void empty();

  // What a warm call reads lies together, the first words of the signature too.
  TableEntry* next = nullptr;  // the entry that the call after this one's hit last time
  const Plan* plan = nullptr;
  const DecisionRecord* record = nullptr;
  bool asynchronous = false;
  bool plain = false;  // it needs neither a stream nor a workspace
  bool casts = false;
  signature::Words signature = {};
  std::shared_ptr<Prepared> prepared = {};
};
static_assert(sizeof(TableEntry) == 192);

}  // namespace xpuruntime
