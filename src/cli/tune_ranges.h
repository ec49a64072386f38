#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "core/json_text.h"
#include "xpuruntime/tune/range_result.h"

namespace xpuruntime::cli {

/// Takes the texts that have ranges out of a list and reads them.
std::vector<ProblemRange> take_ranges(Context& context, std::vector<std::string>& texts);

/// Of a log's problems: says which ranges they seem to come from, or puts these into `ranges` and leaves the others.
void propose_from_log(const Context& context, bool use, std::vector<Problem>& problems,
                      std::vector<ProblemRange>& ranges);

/// What one problem and the ranges get of a budget for all.
double share_of_problems(std::size_t problems, const std::vector<ProblemRange>& ranges);

/// One after the other; what is left of the total budget is shared out by how much they need.
std::vector<RangeResult> tune_ranges(Runtime& runtime, const std::vector<ProblemRange>& ranges, TuneOptions options,
                                     const std::function<bool()>& keep_going);

std::string ranges_text(const std::vector<RangeResult>& results, const Painter& paint);
Json ranges_json(const std::vector<RangeResult>& results);

}  // namespace xpuruntime::cli
