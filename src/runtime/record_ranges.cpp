#include "runtime/decided_parts.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime {

void record_ranges(KernelLock& lock, Runtime& runtime, std::span<const ProblemRange> ranges) {
  for (const ProblemRange& range : ranges) {
    for (const DecidedPart& part : decided_parts(runtime, range, "record_lock")) {
      const auto refuse = [&](const std::string& why) {
        fail(ErrorCode::not_supported, "record_lock", to_string(part.range) + ": " + why);
      };
      if (part.least.kernel.empty()) refuse(part.least.because + "; leave these sizes out, or change the policy");
      if (!part.least.casts.empty() || !part.largest.casts.empty()) {
        refuse(
            "its tensors are cast first, and casts of ranges are not recorded; write the range in the dtypes that "
            "the kernel gets");
      }
      LockEntry entry;
      entry.problem = to_string(part.range.with_limits(part.least.problem.limits));
      entry.kernel = part.least.kernel;
      entry.kernel_version = written_version(part.least.kernel_version);
      entry.plan = part.plan;
      entry.workspace_bytes = std::max(part.least.workspace_bytes, part.largest.workspace_bytes);
      lock.add(entry, environment_at(runtime, range.least().device));
    }
  }
}

}  // namespace xpuruntime
