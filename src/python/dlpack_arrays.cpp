#include "python/dlpack_arrays.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>

#include "python/gil.h"
#include "python/types.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* plain_name = "dltensor";
constexpr std::int32_t cuda = 2;
constexpr int no_wait = -1;
constexpr int legacy_default_stream = 1;  // what DLPack calls the stream that a null pointer means to CUDA

void check(int failed) {
  if (failed == 0) return;
  if (PyErr_Occurred() == nullptr)
    PyErr_SetString(PyExc_BufferError, "the array's package gave no tensor and no reason");
  throw nb::python_error();
}

/// The error that a package raised, in its words, as one of ours: its array is of a kind that has no DLPack.
[[noreturn]] void refuse_as_its_package_does(const Where& where, const nb::python_error& error) {
  if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw error;
  std::string text = python_str(error.value());
  text = text.substr(0, std::min(text.find('\n'), text.find(" Exception raised from")));
  where.fail(ErrorCode::not_supported, "its package does not export it (" + text + "); pass a dense array on a device");
}

[[noreturn]] void refuse_as_its_package_does(const Where& where) {
  if (PyErr_Occurred() == nullptr) {
    where.fail(ErrorCode::not_supported, "its package does not export it, and gives no reason; pass another array");
  }
  refuse_as_its_package_does(where, nb::python_error());
}

bool is_type_error(const nb::python_error& error) { return error.matches(PyExc_TypeError); }

/// What has no counterpart here is said of the argument that it came in.
template <class Read>
Tensor described(Read read, const Where& where) {
  try {
    return read();
  } catch (const Error& error) {
    where.fail(error.code(), error.what());
  }
}

/// The stream that our work on the array's device is queued on: the producer waits there for its own.
nb::object stream_for(nb::handle array, const Where& where) {
  const nb::object device = array.attr("__dlpack_device__")();
  std::pair<std::int32_t, std::uint8_t> pair;
  if (!nb::try_cast(device, pair)) {
    where.fail(ErrorCode::invalid_argument,
               "its __dlpack_device__ gave " + python_repr(device) +
                   " and not a tuple of the device's kind and index; pass an array of another package");
  }
  if (pair.first != cuda) return nb::none();
  const Device own{DeviceType::nvidia, pair.second};
  const DeviceManager& devices = Runtime::global().devices();
  // A wait of a captured stream for work outside of it would break the capture.
  if (devices.has(own) && devices.driver(own).capturing(own.index, current_stream(own))) return nb::int_(no_wait);
  void* stream = current_stream(own).handle;
  if (stream == nullptr) return nb::int_(legacy_default_stream);
  return nb::int_(reinterpret_cast<std::uintptr_t>(stream));
}

// Packages from before version 1 of the standard take no max_version.
nb::object capsule_of(nb::handle array, const Where& where) {
  const nb::object stream = stream_for(array, where);
  try {
    return array.attr("__dlpack__")(nb::arg("stream") = stream, nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    if (!is_type_error(error)) throw;
  }
  return stream.is_none() ? array.attr("__dlpack__")() : array.attr("__dlpack__")(nb::arg("stream") = stream);
}

Tensor take_versioned(nb::handle capsule, Access access, const Where& where) {
  auto* managed = static_cast<dlpack::VersionedManaged*>(PyCapsule_GetPointer(capsule.ptr(), versioned_name));
  if (managed == nullptr) throw nb::python_error();
  if (access == Access::write && (managed->flags & dlpack::read_only_flag) != 0) {
    where.fail(ErrorCode::invalid_argument, "its package says that it is read-only; pass an array that can be written");
  }
  const Tensor tensor = described([&] { return dlpack::from_dlpack(managed); }, where);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
  return tensor;
}

Tensor take_plain(nb::handle capsule, const Where& where) {
  auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), plain_name));
  if (managed == nullptr) throw nb::python_error();
  const Tensor tensor = described([&] { return dlpack::from_dlpack(managed); }, where);
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return tensor;
}

/// Deleters of Python packages need the GIL, and tensors may die without it.
Tensor with_careful_owner(const Tensor& tensor) {
  struct Keeper {
    std::shared_ptr<void> owner;
  };
  std::shared_ptr<void> careful(new Keeper{tensor.owner()}, [](void* keeper) {
    if (!Py_IsInitialized()) return;
    const WithGil gil;
    delete static_cast<Keeper*>(keeper);
  });
  return Tensor(tensor.data(), tensor.spec(), tensor.device(), tensor.byte_offset(), std::move(careful));
}

// One cannot ask a package for a layout. What it made is contiguous, and has the memory that this one needs.
dlpack::VersionedManaged* laid_out(dlpack::VersionedManaged* made, const TensorSpec& spec, Device device) {
  const Tensor whole = dlpack::from_dlpack(made);
  return dlpack::to_versioned_dlpack(Tensor::on(whole.data(), spec, device, whole.byte_offset(), whole.owner()));
}

}  // namespace

const ExchangeApi* exchange_api(PyTypeObject* type) {
  constexpr const char* name = "__dlpack_c_exchange_api__";
  PyObject* capsule = PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), name);
  if (capsule == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const nb::object held = nb::steal(capsule);
  if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api")) return nullptr;
  const auto* api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  while (api != nullptr && api->version.major > dlpack::Version{}.major) api = api->older;
  const bool whole = api != nullptr && api->allocate != nullptr && api->to_object != nullptr &&
                     api->view_object != nullptr && api->work_stream != nullptr;
  return whole ? api : nullptr;
}

Tensor view_through(const ExchangeApi& api, PyObject* array, const Where& where) {
  dlpack::View view;
  if (api.view_object(array, &view) != 0) [[unlikely]]
    refuse_as_its_package_does(where);
  return described([&] { return dlpack::from_view(view); }, where);
}

nb::object new_array_through(const ExchangeApi& api, const TensorSpec& spec, Device device, Tensor& tensor) {
  dlpack::View like;
  like.device = dlpack::device_tag(device);
  like.dtype = dlpack::type_tag(spec.dtype);
  like.rank = static_cast<std::int32_t>(spec.shape.size());
  like.shape = const_cast<std::int64_t*>(spec.shape.data());
  dlpack::VersionedManaged* made = nullptr;
  std::string problem;
  const auto set_error = [](void* context, const char* kind, const char* message) {
    *static_cast<std::string*>(context) = std::string(kind) + ": " + message;
  };
  if (api.allocate(&like, &made, &problem, set_error) != 0) {
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    fail(ErrorCode::out_of_memory, "empty", "the array's package could not make the result: " + problem);
  }
  if (!spec.contiguous) made = laid_out(made, spec, device);
  const dlpack::View& view = made->view;
  const bool as_asked =
      !spec.contiguous || view.strides == nullptr || std::equal(spec.strides.begin(), spec.strides.end(), view.strides);
  tensor = as_asked ? Tensor::on(view.data, spec, device, view.byte_offset) : dlpack::from_view(view);
  void* object = nullptr;
  check(api.to_object(made, &object));
  return nb::steal(static_cast<PyObject*>(object));
}

Tensor from_capsule_of(nb::handle array, Access access, const Where& where) {
  nb::object capsule;
  try {
    capsule = capsule_of(array, where);
  } catch (const nb::python_error& error) {
    refuse_as_its_package_does(where, error);
  }
  const char* name = PyCapsule_CheckExact(capsule.ptr()) ? PyCapsule_GetName(capsule.ptr()) : nullptr;
  if (name != nullptr && std::strcmp(name, versioned_name) == 0) {
    return with_careful_owner(take_versioned(capsule, access, where));
  }
  if (name != nullptr && std::strcmp(name, plain_name) == 0) return with_careful_owner(take_plain(capsule, where));
  PyErr_Clear();
  where.fail(ErrorCode::invalid_argument, "the __dlpack__ of this " + python_type(array) +
                                              " gave no DLPack capsule; pass an array of another package");
}

}  // namespace xpuruntime::python
