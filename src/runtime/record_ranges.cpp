#include <algorithm>
#include <tuple>

#include "runtime/decided_parts.h"
#include "select/lock_ranges.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime {
namespace {

constexpr const char* function = "record_lock";

[[noreturn]] void refuse(const ProblemRange& range, const std::string& why) {
  fail(ErrorCode::not_supported, function, to_string(range) + ": " + why);
}

void check_casts(const ProblemRange& range, const Decision& decision) {
  if (decision.casts.empty()) return;
  refuse(range,
         "its tensors are cast first, and casts of ranges are not recorded; write the range in the dtypes that the "
         "kernel gets");
}

struct Recorded {
  ProblemRange range = {};
  LockEntry entry = {};
};

/// Adds it as one with those of the same choice that it continues: ranges may be given in parts, under other names.
void add_joined(std::vector<Recorded>& all, Recorded added) {
  const auto choice = [](const LockEntry& entry) { return std::tie(entry.kernel, entry.kernel_version, entry.plan); };
  for (auto at = all.begin(); at != all.end();) {
    const bool same = choice(at->entry) == choice(added.entry);
    const auto both = same ? joined(at->range, added.range) : std::nullopt;
    if (!both || both->count() > most_decided) {  // more could not be compared with what is decided later
      ++at;
      continue;
    }
    added.range = *both;
    added.entry.problem = to_string(*both);
    added.entry.workspace_bytes = std::max(added.entry.workspace_bytes, at->entry.workspace_bytes);
    all.erase(at);
    at = all.begin();  // another may continue it now
  }
  all.push_back(std::move(added));
}

}  // namespace

void check_recordable(Runtime& runtime, std::span<const ProblemRange> ranges) {
  const ScopedLock unlocked(runtime.dispatcher(), {});
  for (const ProblemRange& range : ranges) {
    check_count(range, function);
    const ScopedPolicy limits(runtime.dispatcher(), KernelPolicy::from_limits(range.least().limits));
    check_casts(range, runtime.dispatcher().explain(range.least()));
  }
}

void record_ranges(KernelLock& lock, Runtime& runtime, std::span<const ProblemRange> ranges) {
  const ScopedLock unlocked(runtime.dispatcher(), {});
  std::vector<Recorded> recorded;
  for (const ProblemRange& range : ranges) {
    for (const DecidedPart& part : decided_parts(runtime, range, function)) {
      if (part.least.kernel.empty()) {
        refuse(part.range, part.least.because + "; leave these sizes out, or change the policy");
      }
      check_casts(part.range, part.least);
      check_casts(part.range, part.largest);
      const LockEntry entry = part.entry();
      add_joined(recorded, {parse_problem_range(entry.problem), entry});
    }
  }
  for (const Recorded& one : recorded) lock.add(one.entry, environment_at(runtime, one.range.least().device));
}

}  // namespace xpuruntime
