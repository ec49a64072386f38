#include "python/arrays.h"

#include "python/bound_array.h"
#include "python/gil.h"

namespace xpuruntime::python {

void Where::fail(ErrorCode code, const std::string& message) const {
  xpuruntime::fail(code, function, std::string(argument) + ": " + message);
}

std::shared_ptr<void> owner_of(nb::object object) {
  return std::shared_ptr<void>(object.release().ptr(), [](void* kept) {
    if (!Py_IsInitialized()) return;
    const WithGil gil;
    Py_DECREF(static_cast<PyObject*>(kept));
  });
}

Tensor tensor_from(nb::handle array, Access access, const char* what, bool may_copy) {
  const Where where{"tensor", what};
  BoundArray bound;
  bound.bind(array.ptr(), access, where);
  if (bound.is_copy() && (access == Access::write || !may_copy)) {
    where.fail(ErrorCode::invalid_argument,
               "its strides are negative or its elements misaligned, which no tensor can be; pass a copy of it");
  }
  const Tensor& tensor = bound.tensor();
  if (tensor.owner() != nullptr) return tensor;
  return Tensor(tensor.data(), tensor.spec(), tensor.device(), tensor.byte_offset(),
                owner_of(bound.stand_in().is_valid() ? bound.stand_in() : nb::borrow(array)));
}

}  // namespace xpuruntime::python
