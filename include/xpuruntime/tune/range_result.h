#pragma once

#include <string>
#include <string_view>
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
  std::vector<TuneResult> measured = {};  // each size once, by its last race; in the order of these
  std::size_t problems = 0;               // in the range
  std::size_t covered = 0;                // by the parts
  std::size_t guessed = 0;          // of those, with the kernel of the measured ones around them, as points ran out
  std::size_t undecided = 0;        // stay with the default, as points or time ran out
  std::size_t too_large = 0;        // left out, as their tensors do not fit in memory
  std::size_t named_by_policy = 0;  // problems that the policy names a kernel for: left alone
  std::string named_because = {};   // how it does that: "the policy prefers openblas"
  bool complete = true;             // false: cancelled, nothing timed, or nothing of sizes that other kernels can run
  bool cut_short = false;           // the total budget ended it before it was sure of all
  std::string cut_by = {};          // "total_budget_s" then
  double spent_s = 0;

  /// Complete, and no size is left to the default for want of time.
  bool finished() const { return complete && !(cut_short && undecided > 0); }

  /// One sentence: how many parts, from how many measurements, what cut it short, and what is missing. Budgets are
  /// called by these names.
  std::string summary(std::string_view total_budget = "total_budget_s",
                      std::string_view problem_budget = "problem_budget_s") const;
};

/// What tuning problems and ranges together ended with, in the order they were given. Problems that were not begun, as
/// the budget was spent, have a result that says so; where it was cancelled, those after the last are missing.
struct TunedTogether {
  std::vector<TuneResult> results = {};
  std::vector<RangeResult> ranges = {};
  bool cancelled = false;
};

}  // namespace xpuruntime
