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
};

/// `decisions` are what runs the problems now, in their order; none where tuning was not finished. Where another kernel
/// than the tuned one runs, as the policy says so, that is noted.
std::string tuned_text(const std::vector<Problem>& problems, const std::vector<TuneResult>& results,
                       const std::vector<RangeResult>& ranges, const std::vector<Decision>& decisions,
                       const TunedFiles& files, const Painter& paint);
std::string tuned_json(const std::vector<Problem>& problems, const std::vector<TuneResult>& results,
                       const std::vector<RangeResult>& ranges, const std::vector<Decision>& decisions,
                       const TunedFiles& files);

}  // namespace xpuruntime::cli
