#pragma once

#include "python/arrays.h"
#include "xpuruntime/core/dlpack.h"

namespace xpuruntime::python {

/// DLPack's table of C functions, which types of some packages carry (`__dlpack_c_exchange_api__`): what capsules do,
/// without capsules. The layout is the standard's. Functions return 0, or set a Python error.
struct ExchangeApi {
  dlpack::Version version = {};
  const ExchangeApi* older = nullptr;
  int (*allocate)(dlpack::View* like, dlpack::VersionedManaged** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message)) = nullptr;
  int (*from_object)(void* object, dlpack::VersionedManaged** out) = nullptr;
  int (*to_object)(dlpack::VersionedManaged* tensor, void** out) = nullptr;
  int (*view_object)(void* object, dlpack::View* out) = nullptr;  // may be null
  int (*work_stream)(std::int32_t device_type, std::int32_t device_index, void** out) = nullptr;
};

/// The table of a type; null where it has none that we know.
const ExchangeApi* exchange_api(PyTypeObject* type);

/// A tensor on an array's memory, without an owner: the array must outlive it.
Tensor view_through(const ExchangeApi& api, PyObject* array, const Where& where);

/// A new row-major array of the package that the table belongs to, not filled, and the tensor on its memory.
nb::object new_array_through(const ExchangeApi& api, const TensorSpec& spec, Device device, Tensor& tensor);

/// Takes an array's capsule; the tensor owns it. An array that its package gives out as read-only is an error to write.
Tensor from_capsule_of(nb::handle array, Access access, const Where& where);

}  // namespace xpuruntime::python
