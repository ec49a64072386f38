#pragma once

#include "backends/cpu/base/storage.h"
#include "core/pointwise_loss.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// The sum of n losses from `offset` on; where `out` is not null they are stored there, in the same dtype.
float pointwise_losses(const PointwiseLossTerms& terms, DataType dtype, const void* x, const void* target,
                       std::int64_t offset, std::int64_t n, void* out);

}  // namespace xpuruntime::cpu
