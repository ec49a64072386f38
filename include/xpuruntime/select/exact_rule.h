#pragma once

#include <string>
#include <vector>

#include "xpuruntime/select/policy.h"

namespace xpuruntime {

/// The rule that gives one problem its kernel, by the plan named where there is one, and says nothing about any other:
/// dtypes, shapes, strides where they are unusual, attributes, limits, direction and device type must all be the
/// problem's.
PolicyRule exact_rule(const Problem& problem, const std::string& kernel, const std::string& plan = {});

/// The policy with such rules before its own; those of its own that ask for the same are replaced.
KernelPolicy with_exact_rules(KernelPolicy policy, std::vector<PolicyRule> rules);

}  // namespace xpuruntime
