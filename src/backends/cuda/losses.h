#pragma once

#include "backends/cuda/launch.h"
#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/profile.h"

namespace xpuruntime::cuda {

/// Where the losses of a problem go, but for the parts. `mean` is what the sum is divided by where a mean is asked for;
/// 0: the sum of the weights.
LossOutput loss_output(const Problem& problem, double mean);

/// How many blocks take so many elements, each thread `width` at a time: where they leave sums behind, no more than
/// keep the device busy.
std::int64_t loss_blocks(std::int64_t elements, std::int64_t width, bool reduced, const DeviceProfile& profile);

}  // namespace xpuruntime::cuda
