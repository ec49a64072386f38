#pragma once

#include <vector>

#include "cli/context.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::cli {

/// How long a model took, by the host's clock until the device was done.
struct ModelTimes {
  double first_us = 0;  // the first run, which decides, prepares and plans
  std::vector<double> runs_us = {};

  double median_us() const;
  double min_us() const;
};

/// The microseconds of one run; its results in `results`.
double timed_run(Context& context, const Session& session, const std::vector<Tensor>& inputs, Device device,
                 std::vector<Tensor>& results);

}  // namespace xpuruntime::cli
