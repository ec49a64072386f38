#pragma once

#include <string>

#include "xpuruntime/select/policy.h"

namespace xpuruntime::cli {

/// The file of the policy in force, without which calls would be other problems than those of a lock that is recorded
/// now: `given`, or where that is empty XPURUNTIME_POLICY's. Empty: none is needed.
std::string policy_of_lock(const KernelPolicy& policy, const std::string& given);

/// "policy: policy.json; in force with XPURUNTIME_POLICY=policy.json"
std::string policy_in_force(const std::string& policy);
/// The same of a lock, with the policy that it needs, if any.
std::string lock_in_force(const std::string& lock, const std::string& policy);

}  // namespace xpuruntime::cli
