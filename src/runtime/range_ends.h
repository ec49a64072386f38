#pragma once

#include <vector>

#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {

/// The problems of a range that a reader needs to see: the least and the largest of each part that the policy in force
/// on this thread gives one kernel. At most 4096 problems are decided for it; a larger range is an error.
std::vector<Problem> range_ends(Runtime& runtime, const ProblemRange& range);

}  // namespace xpuruntime
