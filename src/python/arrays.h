#pragma once

#include <memory>
#include <string>

#include "python/bindings.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/tensor.h"

// Arrays of other packages as tensors, without copies. Each kind of array has a file: NumPy's are read field by field,
// PyTorch's through the table of functions that DLPack has for speed, others by DLPack's capsules or Python's buffers.

namespace xpuruntime::python {

enum class Access { read, write };

/// Which argument of which function, for error texts.
struct Where {
  const char* function = "tensor";
  const char* argument = "array";

  [[noreturn]] void fail(ErrorCode code, const std::string& message) const;
};

/// A Python array as a tensor, without a copy: a NumPy array, a PyTorch tensor, our own Tensor, or anything that speaks
/// DLPack or the buffer protocol. The tensor keeps the Python object alive; copies of it may die without the GIL.
/// `what` names the argument in error texts. What is no array is an ArgumentTypeError; what cannot be described (big
/// endian, objects, a read-only output) is one of the others, and says what to do. Only a layout that no tensor can
/// have (negative strides) is copied, and only to be read, and only if that may be.
Tensor tensor_from(nb::handle array, Access access = Access::read, const char* what = "array", bool may_copy = true);

/// Lets a tensor share in a Python object; whoever lets go of it last may do so without the GIL.
std::shared_ptr<void> owner_of(nb::object object);

}  // namespace xpuruntime::python
