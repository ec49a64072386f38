#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/dispatch/dispatch_log.h"
#include "xpuruntime/graph/session.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/lock.h"

namespace xpuruntime {

/// Decides each problem under the policy in force on this thread and records the decisions, those of its casts too. A
/// lock in force has no say: what it lacks is recorded too.
/// Problems that ask for deterministic kernels also run once, on the inputs that the seed gives, for the hash of their
/// outputs. A problem that nothing can run is an error.
KernelLock record_lock(Runtime& runtime, std::span<const Problem> problems, std::uint64_t seed = 1);

/// Records the decisions of calls that were logged; those that failed are left out.
KernelLock record_lock(Runtime& runtime, std::span<const LogEntry> log, std::uint64_t seed = 1);

/// Records which engine runs a model, and if that is `native` the decisions of all calls for such inputs, and of their
/// casts, under the session's own policy. Values count where shapes depend on them; else the specs are enough.
KernelLock record_lock(Runtime& runtime, const Session& session, std::span<const Tensor> inputs,
                       std::uint64_t seed = 1);
KernelLock record_lock(Runtime& runtime, const Session& session, std::span<const TensorSpec> inputs,
                       std::uint64_t seed = 1);

/// Decides every problem of the ranges under the policy in force on this thread, and adds one entry for each part that
/// has one kernel; neighbours of one kernel and plan become one entry. A lock in force has no say. At most 131072
/// problems a range, in at most 4096 parts; casts are an error.
void record_ranges(KernelLock& lock, Runtime& runtime, std::span<const ProblemRange> ranges);

/// Fails where record_ranges would for the ranges as such, whatever is chosen: for who measures for long before that.
void check_recordable(Runtime& runtime, std::span<const ProblemRange> ranges);

/// Where a device's decisions are made.
Environment environment_at(Runtime& runtime, Device device);

/// SHA-256 over the outputs of a problem by the kernel that a lock names, on the inputs that the seed gives.
std::string output_hash(Runtime& runtime, const LockUse& lock, const Problem& problem, std::uint64_t seed);

/// same: it is as it was. revalidated: made elsewhere, and it holds here. failed: see the reason.
enum class ReplayOutcome : std::uint8_t { same, revalidated, failed };
std::string_view to_string(ReplayOutcome outcome);

/// One entry of a lock, tried here.
struct ReplayResult {
  std::string problem = {};  // or "model " and its digits, with its engine as the kernel
  std::string kernel = {};
  ReplayOutcome outcome = ReplayOutcome::same;
  std::string reason = {};          // why it failed, or what differs where it was revalidated
  bool outputs_compared = false;    // its outputs were computed and have the same hash
  std::string kernel_version = {};  // of the kernel here, as in LockEntry
};

struct ReplayReport {
  std::vector<ReplayResult> results = {};  // in the order of the lock
  bool ran = false;                        // false: an entry cannot be replayed here, so nothing ran

  bool fine() const;
};

/// Tries every engine and every entry of a lock here, of a range its least and its largest problem. First all are
/// decided; if one is missing or impossible, nothing runs. Then those with a hash run and are compared. Under
/// LockMode::revalidate, entries that were made on the same device with other software run too, and their numbers are
/// compared with the reference.
ReplayReport verify_lock(Runtime& runtime, const LockUse& lock);

/// The lock with the environment of this machine, and the kernels' versions here, for those entries that were
/// revalidated.
KernelLock refreshed(Runtime& runtime, const KernelLock& lock, const ReplayReport& report);

}  // namespace xpuruntime
