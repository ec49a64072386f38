#pragma once

#include <string>
#include <string_view>

#include "xpuruntime/core/device.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime {

/// Why a kernel of this name is no candidate on this device, from the catalogue: "needs an NVIDIA GPU; this is cpu:0".
std::string why_unavailable(OpId op, std::string_view kernel, Device device);

/// Fails if no backend, built or not, has a kernel of this name for the op.
void check_kernel_name(const char* function, OpId op, std::string_view kernel);

}  // namespace xpuruntime
