#include "python/errors.h"

#include <string>
#include <typeinfo>

#include "core/printable.h"
#include "python/bindings.h"

namespace xpuruntime::python {
namespace {

const char* exception_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "InvalidArgumentError";
    case ErrorCode::unknown_name:
      return "UnknownNameError";
    case ErrorCode::not_supported:
      return "NotSupportedError";
    case ErrorCode::device_error:
      return "DeviceError";
    case ErrorCode::device_lost:
      return "DeviceLostError";
    case ErrorCode::out_of_memory:
      return "OutOfMemoryError";
    case ErrorCode::io_error:
      return "FileError";
    case ErrorCode::corrupt_data:
      return "CorruptDataError";
    case ErrorCode::timeout:
      return "TimeoutError";
    case ErrorCode::internal:
      break;
  }
  return "InternalError";
}

void set_error(const char* name, const char* text, PyObject* cause = nullptr) {
  PyObject* errors = PyImport_ImportModule("xpuruntime.errors");
  PyObject* type = errors == nullptr ? nullptr : PyObject_GetAttrString(errors, name);
  PyObject* value = type == nullptr ? nullptr : PyObject_CallFunction(type, "s", text);
  if (value != nullptr) {
    if (cause != nullptr) PyException_SetCause(value, nb::handle(cause).inc_ref().ptr());
    PyErr_SetObject(type, value);
  }
  Py_XDECREF(value);
  Py_XDECREF(type);
  Py_XDECREF(errors);
}

}  // namespace

void set_python_error(const Error& error, PyObject* cause) {
  // After Ctrl-C in a callback the user waits for KeyboardInterrupt, not for what came of it.
  if (Py_MakePendingCalls() != 0) return;
  std::string function(error.function());
  if (const auto colons = function.find("::"); colons != function.npos) function.replace(colons, 2, 1, '.');
  set_error(exception_name(error.code()), ("[" + function + "] " + std::string(error.message())).c_str(), cause);
}

void raise_type_error(const std::string& text) {
  set_error("ArgumentTypeError", printable_lines(text).c_str());
  throw nb::python_error();
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      set_python_error(error);
    } catch (const std::bad_cast&) {
      set_error("ArgumentTypeError",
                "[xpuruntime] an argument is not of a type or value that this takes; see its help");
    }
  });
}

}  // namespace xpuruntime::python
