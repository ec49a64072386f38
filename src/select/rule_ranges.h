#pragma once

#include <string>

#include "xpuruntime/core/problem_range.h"
#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

/// Whether a rule with this range matches a problem. As in exact rules, alignments and the device's index do not count,
/// and of the limits those that the range names.
bool in_range(const ProblemRange& range, const Problem& problem, const DeviceProfile& profile);

/// Fails if the rule's range cannot be read, is of another op or spelled otherwise than it prints.
void check_range(const PolicyRule& rule);

/// " at m=17": where in the rule's range a problem is; empty for rules without one.
std::string place_in_range(const PolicyRule& rule, const Problem& problem);

}  // namespace xpuruntime
