#pragma once

#include <string>

#include "python/bindings.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::python {

/// Raises the exception of xpuruntime.errors that stands for an error, its function as Python writes it:
/// [KernelPolicy.load]. `cause`: the exception that it came of, if any.
void set_python_error(const Error& error, PyObject* cause = nullptr);

/// Throws what becomes an ArgumentTypeError. The text starts with `[function]` and ends with what to do.
[[noreturn]] void raise_type_error(const std::string& text);

}  // namespace xpuruntime::python
