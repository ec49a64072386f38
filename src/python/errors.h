#pragma once

#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime::python {

/// Raises the exception of xpuruntime.errors that stands for a code.
void set_python_error(ErrorCode code, const char* text);

/// Throws what becomes an ArgumentTypeError. The text starts with `[function]` and ends with what to do.
[[noreturn]] void raise_type_error(const std::string& text);

}  // namespace xpuruntime::python
