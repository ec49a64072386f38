#pragma once

#include <vector>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// A cast that a call needs before or after its kernel.
struct CastProblem {
  bool is_output = false;
  std::size_t index = 0;  // among the call's inputs or outputs
  Problem problem = {};
};

/// The casts that lead from a problem as it was asked to the one that a kernel gets, and back; inputs first.
std::vector<CastProblem> cast_problems(const Problem& asked, const Problem& inner);

}  // namespace xpuruntime
