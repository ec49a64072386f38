#include <nanobind/stl/string.h>

#include <deque>
#include <string>

#include "python/bound_array.h"
#include "python/numpy_arrays.h"
#include "python/tensor_object.h"

namespace xpuruntime::python {
namespace {

constexpr std::size_t remembered_at_most = 64;

bool has_attribute(PyTypeObject* type, const char* name) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), name) != 0;
}

bool derives_from(PyTypeObject* type, const char* module, const char* name) {
  const nb::handle modules = nb::module_::import_("sys").attr("modules");
  const nb::object found = nb::steal(PyObject_CallMethod(modules.ptr(), "get", "s", module));
  if (!found.is_valid() || found.is_none()) return false;
  const nb::object base = nb::getattr(found, name, nb::none());
  if (base.is_none() || !PyType_Check(base.ptr())) return false;
  return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(base.ptr())) != 0;
}

bool speaks_buffer(PyTypeObject* type) { return PyType_GetSlot(type, Py_bf_getbuffer) != nullptr; }

// Its DLPack does not say so.
bool is_jax(PyTypeObject* type) {
  const nb::object module = nb::getattr(nb::handle(reinterpret_cast<PyObject*>(type)), "__module__", nb::none());
  return nb::isinstance<nb::str>(module) && nb::cast<std::string>(module).starts_with("jax");
}

ArrayType classify(PyTypeObject* type) {
  ArrayType made{type};
  // The type keeps what it has.
  const auto own = [&](const char* name) {
    const nb::object found = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name));
    if (!found.is_valid()) PyErr_Clear();
    return found.ptr();
  };
  made.requires_grad = own("requires_grad");
  if (made.requires_grad != nullptr) made.is_neg = own("is_neg");
  made.immutable = is_jax(type);
  const Numpy* numpy = Numpy::loaded();
  if (type == reinterpret_cast<PyTypeObject*>(nb::type<TensorObject>().ptr())) {
    made.kind = ArrayKind::ours;
  } else if (numpy != nullptr && PyType_IsSubtype(type, numpy->array_type()) != 0) {
    // Its mask would be passed over in silence.
    made.kind = derives_from(type, "numpy.ma", "MaskedArray") ? ArrayKind::none : ArrayKind::numpy;
  } else if ((made.api = exchange_api(type)) != nullptr) {
    made.kind = ArrayKind::exchange;
  } else if (has_attribute(type, "__dlpack__") && has_attribute(type, "__dlpack_device__")) {
    made.kind = ArrayKind::dlpack;
  } else if (numpy != nullptr && derives_from(type, "numpy", "generic")) {
    made.kind = ArrayKind::numpy_scalar;
  } else if (speaks_buffer(type)) {
    made.kind = ArrayKind::buffer;
  }
  return made;
}

}  // namespace

const ArrayType& array_type_of(PyObject* object) {
  static auto* known = new std::deque<ArrayType>;
  PyTypeObject* type = Py_TYPE(object);
  for (const ArrayType& row : *known) {
    if (row.type == type) return row;
  }
  static ArrayType last;
  last = classify(type);
  // Remembered for good are those that are read quickly. A type that is no array may become one, once its package is
  // wholly imported.
  const bool quick = last.kind == ArrayKind::ours || last.kind == ArrayKind::numpy || last.kind == ArrayKind::exchange;
  if (!quick || known->size() >= remembered_at_most) return last;
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  known->push_back(last);
  return known->back();
}

}  // namespace xpuruntime::python
