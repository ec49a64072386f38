#pragma once

#include <map>

#include "select/op_name.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

/// Times by op and dtype, given by many threads. RunningStats does not mind the unit: here it is milliseconds, so that
/// the least and the greatest come back as they were given.
class PerformanceTable {
 public:
  void add(OpKey key, double time_ms);
  /// auto_select: those of all dtypes.
  RunningStats find(OpKey key) const;

 private:
  mutable Mutex mutex_;
  std::map<OpKey, RunningStats, OpKeyLess> times_;
};

/// The same times in milliseconds.
RunningStats in_milliseconds(const RunningStats& microseconds);

}  // namespace xpuruntime
