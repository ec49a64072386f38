#pragma once

#include <string>
#include <vector>

#include "xpuruntime/core/problem_range.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {

/// A part of a range, and the kernel that runs all of it.
struct TunedPart {
  ProblemRange range = {};
  std::string kernel = {};
};

/// What tuning a range ended with.
struct RangeResult {
  ProblemRange range = {};                // as kernels get it: after casts, under the limits in force
  std::vector<TunedPart> parts = {};      // do not overlap; every problem in them can be run by its kernel
  std::vector<TuneResult> measured = {};  // in the order they were measured
  std::size_t problems = 0;               // in the range
  std::size_t covered = 0;                // by the parts
  std::size_t guessed = 0;                // of those, decided by the nearest one measured, as points ran out
  std::size_t named_by_policy = 0;        // problems that the policy names a kernel for: left alone
  std::string named_because = {};         // how it does that: "the policy prefers openblas"
  bool complete = true;                   // false: cancelled, or time ran out before all had one
  double spent_s = 0;

  /// One sentence: how many parts, from how many measurements, and what is missing.
  std::string summary() const;
};

}  // namespace xpuruntime
