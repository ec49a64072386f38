#pragma once

#include "python/arrays.h"

namespace xpuruntime::python {

/// A tensor on the memory of an object that speaks the buffer protocol: array.array, memoryview, bytes. The tensor
/// holds the buffer. A layout that no tensor has is copied to be read, and an error to write.
Tensor from_buffer_of(nb::handle object, Access access, const Where& where, bool& is_copy);

/// What the protocol calls elements of a dtype; null where it has no name for them.
const char* buffer_format(DataType dtype);

}  // namespace xpuruntime::python
