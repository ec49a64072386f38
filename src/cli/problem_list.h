#pragma once

#include <string>
#include <vector>

#include "cli/model_options.h"
#include "xpuruntime/core/problem_range.h"

namespace xpuruntime::cli {

struct ListedProblems {
  std::vector<Problem> problems = {};
  std::vector<ProblemRange> ranges = {};
  std::vector<std::string> models_of_others = {};  // none of ours are their calls: "m.onnx: native: the model has ..."

  bool empty() const { return problems.empty() && ranges.empty(); }
};

/// PROBLEM|MODEL... and --from-log, as tune and lock take them.
struct ProblemList {
  std::vector<std::string> texts = {};
  std::string log = {};
  ModelOptions model = {};

  void add_log_to(CLI::App& command);
  bool has_model() const;
  /// All of them in order, each once; none at all is an error. A log is a trace that `xrt trace` or to_trace_json
  /// wrote, or a text with a problem or a range a line, where lines that start with # say nothing. A model stands for
  /// the problems of its calls under the policy in force; one that only other engines run for none.
  /// Events of a trace whose op is unknown here are left out with a note.
  ListedProblems read(Context& context) const;
};

}  // namespace xpuruntime::cli
