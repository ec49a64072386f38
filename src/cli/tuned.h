#pragma once

#include <string>
#include <vector>

#include "cli/colour.h"
#include "xpuruntime/select/decision.h"
#include "xpuruntime/tune/range_result.h"

namespace xpuruntime::cli {

/// What tuning wrote, and where; empty: nothing there.
struct TunedFiles {
  std::string store = {};
  std::string policy = {};
  std::string lock = {};
  std::string lock_policy = {};                // whose limits and casts the lock's problems have; empty: none
  std::vector<std::string> other_limits = {};  // of problems, that no policy sets: "threads=1"
};

/// What was asked of a tuning run, and what it found.
struct Tuned {
  std::vector<Problem> problems = {};
  std::size_t ranges_asked = 0;
  std::vector<TuneResult> results = {};  // of the problems, in their order; fewer where it was stopped
  std::vector<RangeResult> ranges = {};
  bool complete = false;                         // every problem and range has had its turn and has a choice
  std::vector<Decision> decisions = {};          // what runs the problems now; none where it is not complete
  std::string problem_budget = "--per-problem";  // how the user knows the limit of a race
  TunedFiles files = {};
};

/// Whether the store has something new of it.
bool stored_anything(const Tuned& tuned);

/// Where another kernel than the tuned one runs, as the policy says so, that is noted.
std::string tuned_text(const Tuned& tuned, const Painter& paint);
std::string tuned_json(const Tuned& tuned);

}  // namespace xpuruntime::cli
