#include "xpuruntime/core/problem.h"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/arguments.h"
#include "python/types.h"

namespace xpuruntime::python {
namespace {

nb::object attribute_value(const Attributes& attributes, const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return nb::bool_(attributes.boolean(spec.name));
    case AttributeKind::integer:
      return nb::int_(attributes.integer(spec.name));
    case AttributeKind::real:
      return nb::float_(attributes.real(spec.name));
    case AttributeKind::integers:
      return nb::tuple(nb::cast(attributes.list(spec.name)));
    case AttributeKind::choice:
      return to_python(attributes.choice(spec.name));
    case AttributeKind::dtype:
      break;
  }
  return to_python(attributes.data_type(spec.name));
}

Problem parsed(nb::handle text, nb::handle device) {
  const Device where = device.is_none() ? Device{} : device_from(device);
  if (nb::isinstance<Problem>(text)) return nb::cast<Problem>(text);
  return parse_problem(text_from(text, "Problem", "text"), where);
}

void bind_spec(nb::module_& module) {
  nb::class_<TensorSpec>(module, "TensorSpec", "What a choice may know of one tensor.")
      .def_prop_ro(
          "dtype", [](const TensorSpec& self) { return to_python(self.dtype); }, "Its short name: \"f32\".")
      .def_prop_ro(
          "shape", [](const TensorSpec& self) { return to_python(self.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "strides", [](const TensorSpec& self) { return to_python(self.strides); },
          nb::sig("def strides(self) -> tuple[int, ...]"), "In elements.")
      .def_prop_ro(
          "alignment", [](const TensorSpec& self) { return static_cast<int>(self.alignment); }, "In bytes.")
      .def_ro("contiguous", &TensorSpec::contiguous)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const TensorSpec& self) { return nb::hash(to_python(to_string(self))); })
      .def("__str__", [](const TensorSpec& self) { return to_string(self); })
      .def("__repr__", [](const TensorSpec& self) { return "TensorSpec('" + to_string(self) + "')"; });
  nb::class_<Limits>(module, "Limits", "Bounds that the caller's policy sets; None where there is none.")
      .def_ro("workspace_bytes", &Limits::workspace_bytes)
      .def_ro("deterministic", &Limits::deterministic)
      .def_ro("threads", &Limits::threads);
}

}  // namespace

nb::dict attribute_values(const Attributes& attributes) {
  nb::dict values;
  for (const AttributeSpec& spec : op_info(attributes.op()).attributes) {
    values[to_python(spec.name)] = attribute_value(attributes, spec);
  }
  return values;
}

void bind_problem(nb::module_& module) {
  bind_spec(module);
  nb::class_<Problem>(module, "Problem", "Everything a choice may depend on, and nothing else.")
      .def(
          "__init__",
          [](Problem* self, nb::handle text, nb::handle device) { new (self) Problem(parsed(text, device)); },
          nb::arg("text").none(), nb::arg("device") = nb::none(),
          nb::sig("def __init__(self, text: str | Problem, device: object = None) -> None"),
          "Reads a text such as \"matmul(f32[64,64], f32[64,64]) @cpu:0\".")
      .def_prop_ro("op", [](const Problem& self) { return to_python(to_string(self.op)); })
      .def_prop_ro(
          "direction",
          [](const Problem& self) { return self.direction == Direction::forward ? "forward" : "backward"; },
          "\"forward\" or \"backward\".")
      .def_prop_ro("device", [](const Problem& self) { return self.device; })
      .def_prop_ro("inputs", [](const Problem& self) { return self.inputs; })
      .def_prop_ro("outputs", [](const Problem& self) { return self.outputs; })
      .def_prop_ro(
          "attributes", [](const Problem& self) { return attribute_values(self.attributes); },
          nb::sig("def attributes(self) -> dict[str, object]"), "Every attribute of the op, defaults filled in.")
      .def_prop_ro("limits", [](const Problem& self) { return self.limits; })
      .def_prop_ro(
          "dtype", [](const Problem& self) { return to_python(promoted_dtype(self)); },
          "What its floating inputs have in common without loss.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Problem& self) { return static_cast<Py_ssize_t>(hash_of(self) >> 2); })
      // Copies and pickles go by the text, which is all of it.
      .def("__reduce__",
           [](const Problem& self) { return nb::make_tuple(nb::type<Problem>(), nb::make_tuple(to_string(self))); })
      .def("__str__", [](const Problem& self) { return to_string(self); })
      .def("__repr__", [](const Problem& self) { return "Problem('" + to_string(self) + "')"; });
}

}  // namespace xpuruntime::python
