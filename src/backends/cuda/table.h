#pragma once

#include <span>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cuda {

/// Every kernel of this backend, fastest first, reference last.
std::span<const KernelSpec> kernel_table();

}  // namespace xpuruntime::cuda
