#pragma once

#include <string>
#include <vector>

#include "cli/colour.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime::cli {

/// What tuning wrote, and where; empty: nothing there.
struct TunedFiles {
  std::string store = {};
  std::string policy = {};
  std::string lock = {};
};

std::string tuned_text(const std::vector<Problem>& problems, const std::vector<TuneResult>& results,
                       const TunedFiles& files, const Painter& paint);
std::string tuned_json(const std::vector<Problem>& problems, const std::vector<TuneResult>& results,
                       const TunedFiles& files);

}  // namespace xpuruntime::cli
