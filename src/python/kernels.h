#pragma once

#include "python/bindings.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime::python {

/// A condition that asks a Python function of problem and profile.
Condition python_condition(nb::handle condition);

/// Whether Python functions stand in the registry as kernels, or did: what forks to try one must mind the interpreter.
bool python_kernels_in_use();

/// What a kernel in Python raised last in this thread's calls, handed over; with the GIL.
nb::object take_raised();

/// Throws the error of a call as a Python exception, with what a kernel raised in it as its cause.
[[noreturn]] void raise_with_cause(const Error& error);

}  // namespace xpuruntime::python
