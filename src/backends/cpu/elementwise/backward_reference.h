#pragma once

#include "backends/cpu/base/activation.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// What reaches the input of an activation at `x` of the `gradient` of its output, in double.
using Slope = double (*)(double x, double gradient);

/// Of relu, gelu, silu, sigmoid and tanh.
Slope slope_of(const Problem& problem);
/// Null where there is no activation.
Slope slope_of(Activation activation);

}  // namespace xpuruntime::cpu
