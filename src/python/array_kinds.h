#pragma once

#include "python/dlpack_arrays.h"

namespace xpuruntime::python {

enum class ArrayKind { none, ours, numpy, numpy_scalar, exchange, dlpack, buffer };

/// How arrays of one Python type are read and made.
struct ArrayType {
  PyTypeObject* type = nullptr;
  ArrayKind kind = ArrayKind::none;
  const ExchangeApi* api = nullptr;   // of `exchange`
  PyObject* requires_grad = nullptr;  // the property; null where it has none: what we compute is not in its graph
  bool immutable = false;             // its package takes for granted that it never changes
};

/// Looked up once for each type; the reference is good until the next look-up of a type that was not seen before.
const ArrayType& array_type_of(PyObject* object);

}  // namespace xpuruntime::python
