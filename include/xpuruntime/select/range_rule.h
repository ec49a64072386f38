#pragma once

#include <string>
#include <vector>

#include "xpuruntime/core/problem_range.h"
#include "xpuruntime/select/policy.h"
#include "xpuruntime/tune/range_result.h"

namespace xpuruntime {

/// The rule that gives every problem of a range its kernel and says nothing about any other.
PolicyRule range_rule(const ProblemRange& range, const std::string& kernel);

/// One for each part of a range that was tuned.
std::vector<PolicyRule> range_rules(const RangeResult& result);

/// The policy with such rules, which are parts of one range, before its own but after its rules for single problems;
/// those of its own are replaced that the new ones leave nothing of. So rules that decided sizes when the range was
/// tuned, which its parts leave out, stay; neighbours of one kernel become one rule.
KernelPolicy with_range_rules(KernelPolicy policy, const ProblemRange& range, std::vector<PolicyRule> rules);

}  // namespace xpuruntime
