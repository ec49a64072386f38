#pragma once

#include <string>
#include <vector>

#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {

/// A part of a range that the policy in force on this thread gives one kernel.
struct DecidedPart {
  ProblemRange range = {};
  Decision least = {};    // of its least sizes
  Decision largest = {};  // of its largest
  std::string plan = {};  // the plan's token of every size; varying_plans where they differ
};

/// An error of `function` where a range holds more problems than are decided one by one: 4096.
void check_count(const ProblemRange& range, const std::string& function);

/// Decides every problem of a range, of which there may be 4096; a larger range is an error of `function`. Problems
/// that nothing can run are parts without a kernel.
std::vector<DecidedPart> decided_parts(Runtime& runtime, const ProblemRange& range, const std::string& function);

}  // namespace xpuruntime
