#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xpuruntime/select/decision.h"

namespace xpuruntime {

/// One call that ran while logging was on.
struct LogEntry {
  std::shared_ptr<const Decision> decision = {};
  double start_us = 0;       // since the dispatcher was made
  double elapsed_us = 0;     // of the device where it can tell, else of the host; see device_time
  bool device_time = false;  // true: measured by device events. false: by the host; 0 where a device gave no events
  bool failed = false;       // the launch reported an error; the next entry of this problem is the fallback
  std::uint64_t thread = 0;  // a small number per thread

  std::string_view op_name() const { return to_string(decision->problem.op); }
  std::string_view selected_kernel() const { return decision->kernel; }
  const Dims& input_shape() const { return decision->problem.inputs.front().shape; }
  DataType dtype() const { return decision->problem.inputs.front().dtype; }
};

/// What a caller of the dispatcher did while logging was on, such as a run of a model or one of its nodes: calls of its
/// thread in that time are parts of it.
struct LogSpan {
  std::string name = {};
  std::string category = {};
  std::vector<std::pair<std::string, std::string>> arguments = {};
  double start_us = 0;  // as of LogEntry
  double elapsed_us = 0;
  std::uint64_t thread = 0;
};

/// The log as Chrome and Perfetto read it ("traceEvents"): one slice per call, with the decision in its arguments, and
/// one per span. Decisions that no entry has, as a log drops its oldest, come first as instant events.
std::string to_trace_json(std::span<const LogEntry> entries,
                          std::span<const std::shared_ptr<const Decision>> decisions = {},
                          std::span<const LogSpan> spans = {});

}  // namespace xpuruntime
