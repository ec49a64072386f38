#include "python/types.h"

#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include <string_view>

#include "python/arguments.h"
#include "python/errors.h"

namespace xpuruntime::python {
namespace {

/// The name under which a dtype object of another package says what it is; empty where it is none.
std::string name_of_dtype(nb::handle value) {
  const auto text_of = [](nb::handle text) { return text_from(text, "dtype", "the name"); };
  if (nb::isinstance<nb::str>(value)) return text_of(value);
  if (PyType_Check(value.ptr())) {
    // Python's own float means 64 bits to NumPy and 32 to PyTorch: better to ask.
    const bool ambiguous =
        value.is(nb::handle((PyObject*)&PyFloat_Type)) || value.is(nb::handle((PyObject*)&PyLong_Type));
    return ambiguous ? std::string() : text_of(value.attr("__name__"));
  }
  if (nb::hasattr(value, "name") && nb::isinstance<nb::str>(value.attr("name"))) {
    return text_of(value.attr("name"));
  }
  const std::string text = python_repr(value);  // "torch.float32"
  constexpr std::string_view torch = "torch.";
  return text.starts_with(torch) ? text.substr(torch.size()) : std::string();
}

/// A text that Python made of a value; the value's type where it made none, or none that is whole.
std::string text_or_type(PyObject* made, nb::handle value) {
  const nb::object text = nb::steal(made);
  const char* found = text.is_valid() ? PyUnicode_AsUTF8AndSize(text.ptr(), nullptr) : nullptr;
  if (found != nullptr) return found;
  PyErr_Clear();
  return a_python_type(value);
}

}  // namespace

std::string python_repr(nb::handle value) { return text_or_type(PyObject_Repr(value.ptr()), value); }
std::string python_str(nb::handle value) { return text_or_type(PyObject_Str(value.ptr()), value); }

std::string python_type(nb::handle value) { return nb::cast<std::string>(value.type().attr("__name__")); }

std::string a_python_type(nb::handle value) {
  const std::string name = python_type(value);
  const bool vowel = !name.empty() && std::string_view("aeiouAEIOU").find(name[0]) != std::string_view::npos;
  return (vowel ? "an " : "a ") + name;
}

DataType data_type_from(nb::handle value) {
  const std::string name = name_of_dtype(value);
  if (name.empty()) {
    raise_type_error("[dtype] " + python_repr(value) +
                     " is not a dtype; pass a name such as \"bf16\", a NumPy dtype or a PyTorch dtype");
  }
  return parse_data_type(name == "float8_e4m3fn" ? "f8e4m3" : std::string_view(name));
}

Device device_from(nb::handle value) {
  if (nb::isinstance<Device>(value)) return nb::cast<Device>(value);
  if (nb::isinstance<nb::str>(value) || python_type(value) == "device") {
    return parse_device(text_from(nb::str(value), "device", "the name"));
  }
  raise_type_error("[device] " + a_python_type(value) + " is not a device; pass a name such as \"cpu\" or \"cuda:0\"");
}

nb::str to_python(DataType dtype) {
  const std::string_view name = to_string(dtype);
  return nb::str(name.data(), name.size());
}

void bind_types(nb::module_& module) {
  nb::class_<Device>(module, "Device", "One device of this machine: cuda:0.")
      .def(
          "__init__", [](Device* self, nb::handle name) { new (self) Device(device_from(name)); },
          nb::arg("name").none(), nb::sig("def __init__(self, name: object) -> None"))
      .def_prop_ro(
          "type", [](Device self) { return std::string(to_string(self.type)); }, "Its kind: cpu, cuda, opencl.")
      .def_prop_ro("index", [](Device self) { return static_cast<int>(self.index); })
      .def("__str__", [](Device self) { return to_string(self); })
      .def("__repr__", [](Device self) { return "Device('" + to_string(self) + "')"; })
      .def(
          "__eq__",
          [](Device self, nb::handle other) {
            if (nb::isinstance<Device>(other)) return self == nb::cast<Device>(other);
            return nb::isinstance<nb::str>(other) && nb::str(to_string(self).c_str()).equal(other);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      // Equal to its text, so hashed like it.
      .def("__hash__", [](Device self) { return nb::hash(nb::str(to_string(self).c_str())); });
}

}  // namespace xpuruntime::python
