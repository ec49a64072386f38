#pragma once

#include <cstdint>
#include <string>

#include "xpuruntime/registry/kernel_dtype.h"

namespace xpuruntime {

/// How long an op took in one precision, over all its problems. Times are in milliseconds.
struct KernelPerformanceStats {
  std::string operation_name = {};
  KernelDtype dtype = KernelDtype::float32;
  double average_execution_time = 0;
  double min_execution_time = 0;
  double max_execution_time = 0;
  std::int64_t execution_count = 0;

  bool operator==(const KernelPerformanceStats&) const = default;

  /// "conv2d f16: 3 runs, 1.5 ms on average, from 1 to 2 ms"
  std::string to_string() const;
};

}  // namespace xpuruntime
