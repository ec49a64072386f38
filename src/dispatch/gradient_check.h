#pragma once

#include <span>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime {

/// Fails where gradients and what they are unscaled to do not belong together: another number of them, an output that
/// is neither f32 nor f64, or memory that two of them share and would be unscaled twice. All else is the op's to check.
void check_gradients(std::span<const Tensor> gradients, std::span<const Tensor> outputs);

}  // namespace xpuruntime
