#pragma once

#include "backends/cpu/base/storage.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

enum class PointwiseLoss : std::uint8_t { divergence, divergence_of_logs, poisson, poisson_of_logs };

struct PointwiseJob {
  DataType dtype = DataType::float32;
  PointwiseLoss kind = PointwiseLoss::divergence;
  bool full = false;  // poisson: with Stirling's formula for the target's factorial
  double eps = 0;
};

PointwiseJob pointwise_job(const Problem& problem);

/// The sum of n losses from `offset` on; where `out` is not null they are stored there, in the job's dtype.
float pointwise_losses(const PointwiseJob& job, const void* x, const void* target, std::int64_t offset, std::int64_t n,
                       void* out);

}  // namespace xpuruntime::cpu
