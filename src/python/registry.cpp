#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/arguments.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime::python {
namespace {

/// A list in which an op is found by any of its names.
nb::object registered_ops(const KernelRegistry& registry) {
  nb::list names;
  for (const OpId op : registry.registered_ops()) names.append(to_python(to_string(op)));
  return nb::module_::import_("xpuruntime._op_names").attr("OpList")(names);
}

std::shared_ptr<KernelSelector> get_or_create_selector(KernelRegistry& self, nb::handle device) {
  const Device where = device_from(device);
  const WithoutGil release;
  return self.get_or_create_selector(where);
}

void register_default_capabilities(const KernelRegistry& self, nb::handle device, nb::handle selector) {
  if (!nb::isinstance<KernelSelector>(selector)) {
    raise_type_error("[register_default_capabilities] selector is " + a_python_type(selector) +
                     "; pass a KernelSelector");
  }
  self.register_default_capabilities(device_from(device), nb::cast<KernelSelector&>(selector));
}

nb::dict get_all_selectors(const KernelRegistry& self) {
  nb::dict selectors;
  for (const auto& [device, selector] : self.get_all_selectors()) selectors[nb::cast(device)] = nb::cast(selector);
  return selectors;
}

nb::list builtin_rule_rows(nb::handle op) {
  const bool all = op.is_none();
  const OpId wanted = all ? OpId() : op_from(op, "builtin_rules");
  nb::list rows;
  for (const BuiltinRule& rule : builtin_rules()) {
    if (!all && rule.op != wanted) continue;
    nb::dict row;
    row["op"] = to_python(to_string(rule.op));
    row["device"] = to_python(to_string(rule.device_type));
    row["kernel"] = to_python(rule.kernel);
    row["because"] = to_python(rule.because);
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_registry(nb::module_& module) {
  nb::class_<KernelRegistry>(module, "KernelRegistry", "Which kernels exist for which op, and a selector per device.")
      .def_static(
          "instance", [] { return &Runtime::global().registry(); }, nb::rv_policy::reference)
      .def("get_registered_ops", registered_ops, nb::sig("def get_registered_ops(self) -> list[str]"),
           "Ops that have at least one kernel here.")
      .def(
          "get_kernel_names",
          [](const KernelRegistry& self, nb::handle op) { return self.kernel_names(op_from(op, "get_kernel_names")); },
          nb::arg("op_name").none(), nb::sig("def get_kernel_names(self, op_name: str) -> list[str]"),
          "The kernels of an op, over all devices.")
      .def("get_or_create_selector", get_or_create_selector, nb::arg("device").none() = "cpu",
           nb::sig("def get_or_create_selector(self, device: object = 'cpu') -> KernelSelector"),
           "The selector of a device, made with the device's default capabilities on first use.")
      .def("register_default_capabilities", register_default_capabilities, nb::arg("device").none(),
           nb::arg("selector").none(),
           nb::sig("def register_default_capabilities(self, device: object, selector: KernelSelector) -> None"),
           "Puts what the device's profile says it computes in back into a selector of that device.")
      .def("get_all_selectors", get_all_selectors,
           nb::sig("def get_all_selectors(self) -> dict[Device, KernelSelector]"), "Those that were made so far.")
      .def(
          "clear", [](KernelRegistry& self) { self.clear(); }, nb::call_guard<WithoutGil>(),
          "Drops all selectors, with their rules and capabilities; those still referenced stay valid.");
  module.def(
      "get_registered_ops", [] { return registered_ops(Runtime::global().registry()); },
      nb::sig("def get_registered_ops() -> list[str]"), "Ops that have at least one kernel here.");
  module.def("builtin_rules", builtin_rule_rows, nb::arg("op").none() = nb::none(),
             nb::sig("def builtin_rules(op: str | None = None) -> list[dict[str, str]]"),
             "The rules that the library brings, in the order they are tried: of an op, or all.");
}

}  // namespace xpuruntime::python
