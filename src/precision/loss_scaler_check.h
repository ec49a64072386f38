#pragma once

#include <string>

#include "xpuruntime/precision/loss_scaler.h"

namespace xpuruntime {

/// Empty where all is well, else what is wrong and what to do.
std::string what_is_wrong(const LossScalerConfig& config);
std::string what_is_wrong(const LossScalerState& state);

}  // namespace xpuruntime
