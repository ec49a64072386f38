#include "python/tensor_object.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "python/arguments.h"
#include "python/buffer_arrays.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/numpy_arrays.h"
#include "python/op_call.h"
#include "python/tensor_views.h"
#include "python/types.h"
#include "xpuruntime/core/dlpack.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {

nb::object make_tensor_object(const Tensor& tensor) { return nb::cast(TensorObject{tensor}); }

const Tensor& TensorObject::usable(const char* function) const {
  if (!expired) return tensor;
  fail(ErrorCode::invalid_argument, function,
       "the tensor was lent to a kernel whose run has returned; copy what you keep while it runs");
}

namespace {

nb::tuple to_tuple(const Dims& dims) {
  nb::list out;
  for (const std::int64_t extent : dims) out.append(extent);
  return nb::tuple(out);
}

Dims dims_from(nb::handle value) { return Dims(integers_from(value, "empty", "shape")); }

/// The arrays that a Py_buffer points to.
struct BufferLayout {
  std::array<Py_ssize_t, max_rank> shape = {};
  std::array<Py_ssize_t, max_rank> strides = {};
};

int refuse_buffer(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  return -1;
}

int get_buffer(PyObject* object, Py_buffer* out, int flags) {
  if (!nb::inst_ready(object)) return refuse_buffer("the tensor was never made; use xpuruntime.empty");
  const TensorObject& self = *nb::inst_ptr<TensorObject>(object);
  const Tensor& tensor = self.tensor;
  const char* format = buffer_format(tensor.dtype());
  if (self.expired) return refuse_buffer("the tensor was lent to a kernel whose run has returned");
  if (tensor.device().type != DeviceType::cpu)
    return refuse_buffer("the tensor is not in the CPU's memory; call .to(\"cpu\") first");
  if (format == nullptr)
    return refuse_buffer("Python's buffers have no " + std::string(to_string(tensor.dtype())) + "; call .numpy()");
  if (self.tensor.read_only() && (flags & PyBUF_WRITABLE) != 0) return refuse_buffer("the tensor is read-only");
  if (!tensor.contiguous() && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
    return refuse_buffer("the tensor is not contiguous");
  auto* layout = new BufferLayout;
  const auto size = static_cast<Py_ssize_t>(size_of(tensor.dtype()));
  for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
    layout->shape[i] = tensor.shape()[i];
    layout->strides[i] = tensor.strides()[i] * size;
  }
  *out = {};
  out->buf = tensor.as<void>();
  out->obj = Py_NewRef(object);
  out->itemsize = size;
  out->len = static_cast<Py_ssize_t>(element_count(tensor.spec())) * size;
  out->readonly = self.tensor.read_only();
  out->ndim = static_cast<int>(tensor.shape().size());
  out->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  out->shape = (flags & PyBUF_ND) != 0 ? layout->shape.data() : nullptr;
  out->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? layout->strides.data() : nullptr;
  out->internal = layout;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* buffer) { delete static_cast<BufferLayout*>(buffer->internal); }

PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                              {0, nullptr}};

/// A capsule that nobody took frees what it holds.
template <class Structure>
nb::object capsule(Structure* managed, const char* name) {
  const auto destroy = [](PyObject* object) {
    const char* current = PyCapsule_GetName(object);
    if (current == nullptr || std::string_view(current).starts_with("used")) return;
    auto* held = static_cast<Structure*>(PyCapsule_GetPointer(object, current));
    if (held != nullptr) held->deleter(held);
  };
  return nb::steal(PyCapsule_New(managed, name, destroy));
}

void check_ordered(const Status& status) {
  if (!status.ok()) fail(status.code(), "__dlpack__", status.message());
}

/// What DLPack's numbers for CUDA's streams mean; nothing where nobody is to wait.
std::optional<Stream> consumers_stream(nb::handle stream) {
  const std::int64_t number = stream.is_none() ? 1 : integer_from(stream, "__dlpack__", "stream");
  if (number == -1) return {};
  if (number == 1) return Stream{};
  if (number < 2) {
    fail(ErrorCode::invalid_argument, "__dlpack__",
         "stream " + std::to_string(number) + " means nothing; pass 1 for the default stream, 2 for the one of the " +
             "thread, the address of another, or -1 for no order");
  }
  return Stream{reinterpret_cast<void*>(static_cast<std::uintptr_t>(number))};
}

/// Work of the consumer begins after ours. On the GPU the stream waits, not the host; a recorded one cannot.
void let_consumer_wait(Device device, nb::handle stream) {
  DeviceDriver& driver = Runtime::global().devices().driver(device);
  const Stream own = current_stream(device);
  if (device.type != DeviceType::nvidia) {
    const WithoutGil released;
    return check_ordered(driver.synchronize(device.index, {}));
  }
  const std::optional<Stream> consumer = consumers_stream(stream);
  if (!consumer || consumer->handle == own.handle) return;
  if (driver.capturing(device.index, own) || driver.capturing(device.index, *consumer)) return;
  Event done = driver.create_event(device.index);
  Status status = driver.record_event(device.index, done, own);
  if (status.ok()) status = driver.queue_wait(device.index, *consumer, done);
  driver.destroy_event(device.index, done);
  check_ordered(status);
}

nb::object to_capsule(const TensorObject& self, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                      nb::handle copy) {
  self.usable("__dlpack__");
  // PyTorch destroys twice what it cannot take.
  if (self.tensor.device().type == DeviceType::opencl)
    fail(ErrorCode::not_supported, "__dlpack__", "memory of OpenCL is not exported; copy it first: tensor.to(\"cpu\")");
  const dlpack::DeviceTag own = dlpack::device_tag(self.tensor.device());
  if (!dl_device.is_none() && nb::cast<std::int32_t>(nb::int_(dl_device[0])) != own.type) {
    fail(ErrorCode::not_supported, "__dlpack__",
         "the tensor is on " + to_string(self.tensor.device()) + "; move it with .to(device)");
  }
  if (!copy.is_none() && nb::cast<bool>(copy)) {
    fail(ErrorCode::not_supported, "__dlpack__", "copy=True is not offered; copy with xpuruntime.ops.copy first");
  }
  if (self.tensor.device().type != DeviceType::cpu) let_consumer_wait(self.tensor.device(), stream);
  const bool versioned = !max_version.is_none() && nb::cast<int>(nb::int_(max_version[0])) >= 1;
  if (versioned) return capsule(dlpack::to_versioned_dlpack(self.tensor), "dltensor_versioned");
  return capsule(dlpack::to_dlpack(self.tensor), "dltensor");
}

nb::object to_numpy(nb::handle self) {
  if (!nb::inst_ready(self)) {
    fail(ErrorCode::invalid_argument, "numpy", "the tensor was never made; use xpuruntime.empty");
  }
  const TensorObject& object = *nb::inst_ptr<TensorObject>(self);
  object.usable("numpy");
  if (object.tensor.device().type != DeviceType::cpu) {
    fail(ErrorCode::not_supported, "numpy",
         "the tensor is on " + to_string(object.tensor.device()) + "; call .to(\"cpu\") first");
  }
  const Numpy& numpy = Numpy::needed("numpy");
  const nb::object asarray = nb::module_::import_("numpy").attr("asarray");
  if (buffer_format(object.tensor.dtype()) != nullptr) return asarray(self);
  const TensorSpec& spec = object.tensor.spec();
  if (size_of(spec.dtype) > 2) {
    fail(ErrorCode::not_supported, "numpy",
         "NumPy has no " + std::string(to_string(spec.dtype)) + "; cast it to f32 with xpuruntime.ops.cast");
  }
  const DataType bits = size_of(spec.dtype) == 2 ? DataType::int16 : DataType::uint8;
  const Tensor same_bits(object.tensor.data(), make_spec(bits, spec.shape, spec.strides), {},
                         object.tensor.byte_offset(), owner_of(nb::borrow(self)));
  const nb::object array =
      asarray(make_tensor_object(object.tensor.read_only() ? same_bits.as_read_only() : same_bits));
  return array.attr("view")(numpy.dtype_object(spec.dtype));
}

/// NumPy asks this one before it would take a tensor for an object of no known kind.
nb::object to_array(nb::handle self, nb::handle dtype, nb::handle copy) {
  const nb::object same = to_numpy(self);
  const bool wants_copy = !copy.is_none() && nb::cast<bool>(copy);
  if (dtype.is_none()) return wants_copy ? nb::object(same.attr("copy")()) : same;
  return same.attr("astype")(dtype, nb::arg("copy") = wants_copy);
}

nb::object move_to(const TensorObject& self, nb::handle device) {
  const Device there = device_from(device);
  self.usable("to");
  Tensor moved;
  {
    const WithoutGil released;
    moved = Runtime::global().devices().copy_to(self.tensor, there);
  }
  return make_tensor_object(moved);
}

/// Not by an op: a lock or a policy in force has no say in it. A part at a time: the host may have less memory.
void repeat(const Tensor& tensor, std::span<const std::byte> element) {
  const std::size_t bytes = static_cast<std::size_t>(element_count(tensor.spec())) * element.size();
  std::vector<std::byte> part(std::min(bytes, std::size_t{1} << 20));  // elements have 1, 2, 4 or 8 bytes
  for (std::size_t at = 0; at < part.size(); ++at) part[at] = element[at % element.size()];
  DeviceDriver& driver = Runtime::global().devices().driver(tensor.device());
  const Stream stream = current_stream(tensor.device());
  for (std::size_t at = 0; at < bytes; at += part.size()) {
    const Status status = driver.copy_from_host(tensor.device().index, tensor.data(), tensor.byte_offset() + at,
                                                part.data(), std::min(part.size(), bytes - at), stream);
    if (!status.ok()) fail(status.code(), "fill", status.message());
  }
}

TensorObject& fill_with(TensorObject& self, nb::handle value) {
  const Tensor& tensor = self.usable("fill");
  if (tensor.read_only()) fail(ErrorCode::invalid_argument, "fill", "the tensor is read-only; fill one that is not");
  if (!tensor.contiguous())
    fail(ErrorCode::not_supported, "fill", "the tensor is not contiguous; fill a contiguous one and copy it there");
  std::array<std::byte, 8> element = {};
  write_number(element.data(), tensor.dtype(), value.ptr(), {"fill", "value"});
  const WithoutGil released;
  repeat(tensor, std::span(element).first(size_of(tensor.dtype())));
  return self;
}

std::string describe(const TensorObject& self) {
  return "Tensor(" + to_string(self.tensor.spec()) + " @" + to_string(self.tensor.device()) + ")";
}

nb::object empty(nb::handle shape, nb::handle dtype, nb::handle device) {
  return make_tensor_object(
      Runtime::global().devices().allocate(data_type_from(dtype), dims_from(shape), device_from(device)));
}

/// The memory may be written through the tensor only if it can be written through the array.
nb::object view_of(nb::handle array) {
  try {
    return make_tensor_object(tensor_from(array, Access::write));
  } catch (const Error&) {
    return make_tensor_object(tensor_from(array, Access::read, "array", /*may_copy=*/false).as_read_only());
  }
}

}  // namespace

void bind_tensor(nb::module_& module) {
  const char* about =
      "Memory on a device with a dtype, a shape and strides. Speaks DLPack and, on the CPU, Python's buffers.";
  nb::class_<TensorObject>(module, "Tensor", about, nb::type_slots(buffer_slots))
      .def_prop_ro(
          "shape", [](const TensorObject& self) { return to_tuple(self.tensor.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "strides", [](const TensorObject& self) { return to_tuple(self.tensor.strides()); },
          nb::sig("def strides(self) -> tuple[int, ...]"), "In elements.")
      .def_prop_ro(
          "dtype", [](const TensorObject& self) { return to_python(self.tensor.dtype()); },
          nb::sig("def dtype(self) -> str"))
      .def_prop_ro("device", [](const TensorObject& self) { return self.tensor.device(); })
      .def_prop_ro("ndim", [](const TensorObject& self) { return self.tensor.shape().size(); })
      .def_prop_ro(
          "size", [](const TensorObject& self) { return element_count(self.tensor.spec()); },
          "How many elements it has.")
      .def_prop_ro("read_only", [](const TensorObject& self) { return self.tensor.read_only(); })
      .def(
          "numpy", [](nb::handle self) { return to_numpy(self); }, "A NumPy array on the same memory; only on the CPU.",
          nb::sig("def numpy(self) -> typing.Any"))
      .def("__array__", &to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: object = None, copy: object = None) -> typing.Any"))
      .def("to", &move_to, nb::arg("device").none(), "A contiguous copy on another device; waits until it is there.",
           nb::sig("def to(self, device: object) -> Tensor"))
      .def("reshape", &reshaped,
           "The same memory in another shape, of which one extent may be -1; only of contiguous tensors.",
           nb::sig("def reshape(self, *shape: int | typing.Sequence[int]) -> Tensor"))
      .def("permute", &permuted, "The same memory with the dims in another order.",
           nb::sig("def permute(self, *dims: int | typing.Sequence[int]) -> Tensor"))
      .def("fill", &fill_with, nb::rv_policy::none, nb::arg("value").none(),
           "Sets every element to a number, on any device, and returns the tensor.",
           nb::sig("def fill(self, value: float) -> Tensor"))
      .def(
          "__dlpack_device__",
          [](const TensorObject& self) {
            const dlpack::DeviceTag tag = dlpack::device_tag(self.tensor.device());
            return nb::make_tuple(tag.type, tag.index);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def("__dlpack__", &to_capsule, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: object = None, max_version: object = None, dl_device: object = "
                   "None, copy: object = None) -> typing.Any"))
      .def("__len__",
           [](const TensorObject& self) {
             if (self.tensor.shape().empty()) raise_type_error("[len] a tensor without dims has no length; use .size");
             return self.tensor.shape()[0];
           })
      .def("__repr__", &describe);
  module.def(
      "empty", &empty, nb::arg("shape").none(), nb::arg("dtype").none() = "f32", nb::kw_only(),
      nb::arg("device").none() = "cpu", "A new tensor on a device, not filled.",
      nb::sig(
          "def empty(shape: int | typing.Sequence[int], dtype: object = 'f32', *, device: object = 'cpu') -> Tensor"));
  module.def("asarray", &view_of, nb::arg("array").none(),
             "A tensor on the memory of an array of any package, without a copy.",
             nb::sig("def asarray(array: object) -> Tensor"));
}

}  // namespace xpuruntime::python
