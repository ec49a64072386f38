#include "python/results.h"

#include <nanobind/stl/string.h>

#include "python/numpy_arrays.h"
#include "python/tensor_object.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

/// The function of an array's package that takes memory in; nothing where it has none.
nb::object taker_of(nb::handle array) {
  if (nb::hasattr(array, "__array_namespace__")) {
    const nb::object space = array.attr("__array_namespace__")();
    if (nb::hasattr(space, "from_dlpack")) return space.attr("from_dlpack");
  }
  const std::string module = nb::cast<std::string>(array.type().attr("__module__"));
  const nb::object package = nb::module_::import_(module.substr(0, module.find('.')).c_str());
  return nb::getattr(package, "from_dlpack", nb::object());
}

nb::object empty_like(const Numpy& numpy, const TensorSpec& spec) {
  try {
    return numpy.empty(spec);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_MemoryError)) throw;
  }
  fail(ErrorCode::out_of_memory, "ops",
       "there is no memory for a result of " + to_string(spec) + "; use smaller arrays");
}

}  // namespace

void Result::make(const BoundArray& like, const TensorSpec& spec, Device device) {
  switch (like.type().kind) {
    case ArrayKind::numpy:
    case ArrayKind::numpy_scalar: {
      const Numpy& numpy = *Numpy::loaded();
      array_ = empty_like(numpy, spec);
      bound_.set(numpy.view(array_.ptr(), Access::write, {}));
      return;
    }
    case ArrayKind::exchange: {
      Tensor tensor;
      array_ = new_array_through(*like.type().api, spec, device, tensor);
      bound_.set(tensor);
      return;
    }
    case ArrayKind::dlpack:
      from_dlpack_ = taker_of(like.array());
      break;
    default:
      break;
  }
  bound_.set(Runtime::global().devices().allocate(spec, device));
}

void Result::use(PyObject* out, const Where& where) {
  bound_.bind(out, Access::write, where);
  array_ = nb::borrow(out);
}

nb::object Result::finish() {
  bound_.write_back();
  bound_.note_write();
  if (array_.is_valid()) return std::move(array_);
  nb::object ours = make_tensor_object(bound_.tensor());
  if (!from_dlpack_.is_valid()) return ours;
  try {
    return from_dlpack_(ours);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    fail(ErrorCode::not_supported, "ops",
         "the arrays' package does not take a result of " + to_string(bound_.tensor().spec()) + " (" +
             python_str(error.value()) + "); pass out=, or arrays of another package");
  }
}

}  // namespace xpuruntime::python
