#include "runtime/decided_parts.h"
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
  for (const ProblemRange& range : ranges) {
    for (const DecidedPart& part : decided_parts(runtime, range, function)) {
      if (part.least.kernel.empty()) {
        refuse(part.range, part.least.because + "; leave these sizes out, or change the policy");
      }
      check_casts(part.range, part.least);
      check_casts(part.range, part.largest);
      lock.add(part.entry(), environment_at(runtime, range.least().device));
    }
  }
}

}  // namespace xpuruntime
