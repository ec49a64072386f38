#pragma once

#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime::python {

/// Raises the exception of xpuruntime.errors that stands for an error, its function as Python writes it:
/// [KernelPolicy.load].
void set_python_error(const Error& error);

/// Throws what becomes an ArgumentTypeError. The text starts with `[function]` and ends with what to do.
[[noreturn]] void raise_type_error(const std::string& text);

}  // namespace xpuruntime::python
