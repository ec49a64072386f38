#pragma once

#include <string>
#include <vector>

#include "cli/context.h"

namespace xpuruntime::cli {

/// PROBLEM... and --from-log, as tune and lock take them.
struct ProblemList {
  std::vector<std::string> texts = {};
  std::string log = {};

  void add_log_to(CLI::App& command);
  /// All of them in order, each once; none at all is an error. A log is a trace that `xrt trace` or to_trace_json
  /// wrote, or a text with a problem a line, where lines that start with # say nothing.
  std::vector<Problem> problems(Context& context) const;
};

}  // namespace xpuruntime::cli
