#pragma once

#include <functional>
#include <string>
#include <vector>

#include "xpuruntime/runtime/replay.h"

namespace xpuruntime {

/// A part of a range that the policy in force on this thread gives one kernel.
struct DecidedPart {
  ProblemRange range = {};
  Decision least = {};    // of its least sizes
  Decision largest = {};  // of its largest
  std::string plan = {};  // the plan's token of every size; varying_plans where they differ

  /// As a lock holds it: after the casts, under the limits in force.
  LockEntry entry() const;
};

/// Problems of a range that are decided one by one. Each costs 10 to 30 us, or 0.2 ms where a library prepares it.
inline constexpr std::size_t most_decided = std::size_t{1} << 17;
/// Parts of a range: each becomes an entry, and a lock with very many is slow to search.
inline constexpr std::size_t most_parts = 4096;

/// An error of `function` where a range holds more problems than that.
void check_count(const ProblemRange& range, const std::string& function);

/// Decides every problem of a range, of which there may be `most_decided` in `most_parts`; more are an error of
/// `function`. Problems that nothing can run are parts without a kernel. Sizes of which `apart` says different things
/// are in different parts.
std::vector<DecidedPart> decided_parts(Runtime& runtime, const ProblemRange& range, const std::string& function,
                                       const std::function<std::string(const Decision&)>& apart = {});

/// One entry of a lock, decided as verify_lock does; nothing runs.
ReplayResult decide_entry(Runtime& runtime, const LockUse& lock, const LockEntry& entry);

/// What differs for the sizes of a range between a lock and what would be decided here and now, by the largest parts
/// of which the same is true. Each size is compared with the entry that decides it in the lock, or all with `own`.
std::vector<LockDifference> range_differences(Runtime& runtime, const KernelLock& lock, const ProblemRange& range,
                                              const LockEntry* own = nullptr);

}  // namespace xpuruntime
