#pragma once

#include <functional>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/precision/precision.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {

/// Chooses for a problem as a kernel gets it: the call's own, or one of its casts.
using DecideOne = std::function<Decision(const Problem& problem, bool is_cast)>;

/// Decides a problem at the precision that is requested for it, with the casts that this takes. Where no kernel
/// computes in that dtype, the next one without loss is tried. Where none is left, the record is about the first.
Decision decide_by_precision(const Problem& asked, Precision precision, const DecideOne& decide);

/// What a policy and autocast ask for. It points to both.
PrecisionRequests requests_of(OpId op, const KernelPolicy& policy, const Autocast& autocast);

/// As the dispatcher resolves it for a call that names no dtype itself, but for a precision hook.
Precision precision_of(const Problem& asked, const KernelPolicy& policy, const Autocast& autocast);

/// Decides a problem for a device that is only described, with the rules of a selector, if one is given.
/// Nothing is prepared and nothing runs.
Decision decide_described(const KernelRegistry& registry, const Problem& asked, const DeviceProfile& profile,
                          const KernelPolicy& policy, const Autocast& autocast,
                          const KernelSelector* selector = nullptr);

/// The decision without its kernel.
Decision refused(Decision decision, std::string because);

/// A cast that a call needs before or after its kernel.
struct CastProblem {
  bool is_output = false;
  std::size_t index = 0;  // among the call's inputs or outputs
  Problem problem = {};
};

/// The casts that lead from a problem as it was asked to the one that a kernel gets, and back; inputs first.
std::vector<CastProblem> cast_problems(const Problem& asked, const Problem& inner);

}  // namespace xpuruntime
