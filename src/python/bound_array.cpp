#include "python/bound_array.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>

#include "python/buffer_arrays.h"
#include "python/errors.h"
#include "python/numpy_arrays.h"
#include "python/tensor_object.h"
#include "python/types.h"

namespace xpuruntime::python {
namespace {

[[noreturn]] void refuse(PyObject* object, const Where& where) {
  const std::string type = python_type(object);
  const char* advice = type == "MaskedArray"
                           ? "; its mask would be lost: pass array.filled(...)"
                           : "; pass an array of NumPy, PyTorch, JAX or CuPy, or anything with DLPack "
                             "or the buffer protocol";
  raise_type_error("[" + std::string(where.function) + "] " + where.argument + " is a " + type + advice);
}

// PyTorch keeps a minus sign as a bit beside some views of complex tensors, and its DLPack leaves that away. Asking
// takes as long as all else: such a view steps over the other half of each number, or starts inside of other memory,
// which PyTorch aligns to 64 bytes.
void check_negative(PyObject* array, const Tensor& tensor, const ArrayType& type, const Where& where) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data()) + tensor.byte_offset();
  const bool whole = tensor.contiguous() && address % 64 == 0;
  if (type.is_neg == nullptr || (whole && element_count(tensor.spec()) > 1)) return;
  const nb::object negative = nb::steal(PyObject_CallFunctionObjArgs(type.is_neg, array, nullptr));
  if (!negative.is_valid()) throw nb::python_error();
  if (negative.ptr() == Py_False) return;
  where.fail(ErrorCode::invalid_argument, "its negative bit is set; pass tensor.resolve_neg()");
}

/// What is looked up in PyTorch once. No static with an initialiser: a thread that waits for one keeps the GIL.
struct TorchGrad {
  PyObject* increment_version = nullptr;  // null before 2.1
  PyObject* forward_names = nullptr;      // of the module of forward-mode differentiation
  PyObject* level_name = nullptr;
};

const TorchGrad& torch_grad() {
  static constinit TorchGrad found;
  if (found.forward_names != nullptr) return found;
  TorchGrad fresh;
  const nb::module_ autograd = nb::module_::import_("torch.autograd");
  const nb::object graph = nb::getattr(autograd, "graph", nb::none());
  fresh.increment_version = nb::getattr(graph, "increment_version", nb::object()).release().ptr();
  fresh.level_name = PyUnicode_InternFromString("_current_level");
  fresh.forward_names = nb::object(autograd.attr("forward_ad").attr("__dict__")).release().ptr();
  return found = fresh;
}

// A tangent would be lost in silence, as a gradient would. Only within torch.autograd.forward_ad.dual_level() are there
// any.
void check_tangent(PyObject* array, const Where& where) {
  const TorchGrad& torch = torch_grad();
  PyObject* level = PyDict_GetItemWithError(torch.forward_names, torch.level_name);
  if (level == nullptr || PyLong_AsLong(level) < 0) return;
  const nb::handle names(torch.forward_names);
  const nb::handle object(array);
  if (names["unpack_dual"](object).attr("tangent").is_none()) return;
  where.fail(ErrorCode::not_supported,
             "it carries a tangent, which does not follow through these ops; pass "
             "torch.autograd.forward_ad.unpack_dual(tensor).primal");
}

/// Whether it requires a gradient. What we compute is not in the package's graph, so where that one is being recorded a
/// gradient would be lost in silence: an error.
bool leaves_a_graph(PyObject* array, const ArrayType& type, const Where& where) {
  // Straight to the property: looking it up by name takes as long as all else that is asked of an array.
  void* get = PyType_GetSlot(Py_TYPE(type.requires_grad), Py_tp_descr_get);
  const nb::object wanted = get != nullptr ? nb::steal(reinterpret_cast<descrgetfunc>(get)(
                                                 type.requires_grad, array, reinterpret_cast<PyObject*>(type.type)))
                                           : nb::getattr(array, "requires_grad");
  if (!wanted.is_valid()) throw nb::python_error();
  check_tangent(array, where);
  if (wanted.ptr() != Py_True) return false;
  if (!nb::cast<bool>(nb::module_::import_("torch").attr("is_grad_enabled")())) return true;
  where.fail(ErrorCode::not_supported,
             "it requires a gradient, which does not follow through these ops; call under torch.no_grad() or pass "
             "tensor.detach() (xpuruntime.backward computes gradients)");
}

// PyTorch finds out by a counter that what it kept for backward was written to since.
void increment_version(nb::handle tensor) {
  const nb::handle increment(torch_grad().increment_version);
  if (increment.is_valid()) increment(tensor);
}

}  // namespace

void BoundArray::bind(PyObject* array, Access access, const Where& where) {
  array_ = array;
  type_ = array_type_of(array);
  if (type_.immutable && access == Access::write) {
    where.fail(ErrorCode::invalid_argument, "arrays of JAX are read-only; leave it out and take the result");
  }
  const bool detach = type_.requires_grad != nullptr && leaves_a_graph(array, type_, where);
  switch (type_.kind) {
    case ArrayKind::numpy:
      return bind_numpy(access, where);
    case ArrayKind::exchange:
      tensor_ = view_through(*type_.api, array, where);
      return check_negative(array, tensor_, type_, where);
    case ArrayKind::ours: {
      if (!nb::inst_ready(array)) refuse(array, where);
      const auto& object = *nb::inst_ptr<TensorObject>(array);
      if (access == Access::write && object.tensor.read_only()) {
        where.fail(ErrorCode::invalid_argument, "it is read-only; pass a tensor that can be written");
      }
      tensor_ = object.usable(where.function);
      return;
    }
    case ArrayKind::dlpack:
      tensor_ = from_capsule_of(detach ? nb::handle(array).attr("detach")() : nb::borrow(array), access, where);
      return check_negative(array, tensor_, type_, where);
    case ArrayKind::buffer:
      tensor_ = from_buffer_of(array, access, where, buffer_copied_);
      return;
    case ArrayKind::numpy_scalar:
      if (access == Access::write) refuse(array, where);
      stand_in_ = Numpy::loaded()->contiguous_copy(array);
      tensor_ = Numpy::loaded()->view(stand_in_.ptr(), access, where);
      return;
    case ArrayKind::none:
      refuse(array, where);
  }
}

void BoundArray::bind_numpy(Access access, const Where& where) {
  const Numpy& numpy = *Numpy::loaded();
  tensor_ = numpy.view(array_, access, where);
  if (tensor_.meta() != 0) [[likely]]
    return;
  stand_in_ = numpy.contiguous_copy(array_);
  tensor_ = numpy.view(stand_in_.ptr(), access, where);
}

Region BoundArray::region() const {
  if (!stand_in_.is_valid()) return region_of(tensor_);
  const nb::handle array(array_);
  const auto strides = nb::cast<std::vector<std::int64_t>>(array.attr("strides"));
  Region region;
  region.begin = nb::cast<std::uintptr_t>(array.attr("__array_interface__")["data"][nb::int_(0)]);
  region.element = nb::cast<std::int64_t>(array.attr("itemsize"));
  region.extents = region.steps = tensor_.shape();
  for (std::size_t i = 0; i < strides.size(); ++i) {
    region.steps[i] = std::abs(strides[i]);
    if (strides[i] < 0) region.begin -= static_cast<std::uintptr_t>(region.steps[i] * (region.extents[i] - 1));
  }
  return region;
}

void BoundArray::write_back() const {
  if (stand_in_.is_valid()) Numpy::loaded()->copy_into(array_, stand_in_);
}

void BoundArray::note_write() const {
  if (array_ != nullptr && type_.requires_grad != nullptr) increment_version(array_);
}

}  // namespace xpuruntime::python
