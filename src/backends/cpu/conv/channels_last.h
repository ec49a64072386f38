#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// What `im2col` does where the channels are last: a row of the matrix product is a pixel of the output, and the window
// under it lies in memory in runs of whole pixels.

namespace xpuruntime::cpu {

/// Whether input, weight and output have their channels last, and are not contiguous anyhow.
bool is_conv_channels_last(const Problem& problem);

Verdict supports_conv_channels_last(const Problem& problem);
std::unique_ptr<const Plan> prepare_conv_channels_last(const Problem& problem);
std::uint64_t workspace_conv_channels_last(const Problem& problem);

}  // namespace xpuruntime::cpu
