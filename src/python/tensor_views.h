#pragma once

#include "python/tensor_object.h"

namespace xpuruntime::python {

/// The same elements in another shape; one extent may be -1. Only of contiguous tensors.
nb::object reshaped(const TensorObject& self, const nb::args& shape);
/// The same elements with the dims in another order.
nb::object permuted(const TensorObject& self, const nb::args& dims);

}  // namespace xpuruntime::python
