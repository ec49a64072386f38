#pragma once

#include "python/arrays.h"

namespace xpuruntime::python {

/// What Python sees as xpuruntime.Tensor.
struct TensorObject {
  Tensor tensor = {};
  bool read_only = false;
};

nb::object make_tensor_object(const Tensor& tensor, bool read_only = false);

}  // namespace xpuruntime::python
