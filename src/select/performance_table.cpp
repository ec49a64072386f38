#include "select/performance_table.h"

#include <cmath>
#include <sstream>

#include "xpuruntime/core/error.h"
#include "xpuruntime/select/kernel_performance_stats.h"

namespace xpuruntime {

void PerformanceTable::add(OpKey key, double time_ms) {
  // Before an entry is made for it: one without times would read as 0 ms.
  if (!std::isfinite(time_ms) || time_ms < 0) {
    fail(ErrorCode::invalid_argument, "update_performance_stats",
         "a time of " + std::to_string(time_ms) + " ms; times must be finite and not negative");
  }
  const std::lock_guard lock(mutex_);
  times_[key].add(time_ms);
}

RunningStats PerformanceTable::find(OpKey key) const {
  RunningStats all;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < kernel_dtype_count; ++i) {
    const auto dtype = static_cast<KernelDtype>(i);
    if (key.dtype != KernelDtype::auto_select && key.dtype != dtype) continue;
    const auto found = times_.find({key.op, dtype});
    if (found != times_.end()) all.merge(found->second);
  }
  return all;
}

RunningStats in_milliseconds(const RunningStats& stats) {
  constexpr double us_per_ms = 1000;
  return RunningStats::from_sum(stats.count(), stats.mean_us() / us_per_ms * static_cast<double>(stats.count()),
                                stats.min_us() / us_per_ms, stats.max_us() / us_per_ms);
}

std::string KernelPerformanceStats::to_string() const {
  std::ostringstream out;
  out << operation_name << ' ' << xpuruntime::to_string(dtype) << ": " << execution_count
      << (execution_count == 1 ? " run, " : " runs, ") << average_execution_time << " ms on average, from "
      << min_execution_time << " to " << max_execution_time << " ms";
  return out.str();
}

}  // namespace xpuruntime
