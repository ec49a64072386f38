#pragma once

#include "python/arrays.h"

namespace xpuruntime::python {

/// What Python sees as xpuruntime.Tensor.
struct TensorObject {
  Tensor tensor = {};
  bool expired = false;  // its memory was lent for a call that is over

  /// The tensor, where its memory may still be touched.
  const Tensor& usable(const char* function) const;
};

nb::object make_tensor_object(const Tensor& tensor);

}  // namespace xpuruntime::python
