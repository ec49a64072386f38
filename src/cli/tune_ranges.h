#pragma once

#include <string>
#include <vector>

#include "cli/context.h"
#include "core/json_text.h"
#include "xpuruntime/tune/range_result.h"

namespace xpuruntime::cli {

/// Of a log's problems: says which ranges they seem to come from, or puts these into `ranges` and leaves the others.
void propose_from_log(const Context& context, bool use, std::vector<Problem>& problems,
                      std::vector<ProblemRange>& ranges);

std::string ranges_text(const std::vector<RangeResult>& results, const Painter& paint);
Json ranges_json(const std::vector<RangeResult>& results);

}  // namespace xpuruntime::cli
