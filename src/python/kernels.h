#pragma once

#include "python/bindings.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime::python {

/// A condition that asks a Python function of problem and profile.
Condition python_condition(nb::handle condition);

/// Whether Python functions stand in the registry as kernels, or did: what forks to try one must mind the interpreter.
bool python_kernels_in_use();

}  // namespace xpuruntime::python
