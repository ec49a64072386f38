#pragma once

#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {

/// Adds the backends that come with the library. One that cannot be opened is absent, with the reason; never an error.
void add_builtin_backends(KernelRegistry& registry, const RuntimeOptions& options);

}  // namespace xpuruntime
