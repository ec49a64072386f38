#pragma once

#include "backends/cpu/base/storage.h"

namespace xpuruntime::cpu {

enum class PointwiseLoss : std::uint8_t { kl_div, kl_div_log_target, poisson, poisson_log_input };

struct PointwiseJob {
  DataType dtype = DataType::float32;
  PointwiseLoss kind = PointwiseLoss::kl_div;
  bool full = false;  // poisson: with Stirling's formula for the target's factorial
  float eps = 0;
};

/// The sum of n losses from `offset` on; where `out` is not null they are stored there, in the job's dtype.
float pointwise_losses(const PointwiseJob& job, const void* x, const void* target, std::int64_t offset, std::int64_t n,
                       void* out);

}  // namespace xpuruntime::cpu
