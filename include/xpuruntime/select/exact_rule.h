#pragma once

#include <string>

#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

/// The rule that gives one problem its kernel and says nothing about any other: dtypes, shapes, strides where they are
/// unusual, attributes, direction and device type must all be the problem's.
PolicyRule exact_rule(const Problem& problem, const std::string& kernel);

}  // namespace xpuruntime
