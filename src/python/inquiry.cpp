#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "core/printable.h"
#include "python/arguments.h"
#include "python/gil.h"
#include "python/policy_values.h"
#include "python/scope_stack.h"
#include "python/scopes.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

std::vector<std::string> available_kernels(nb::handle op, nb::handle device) {
  const KernelRegistry& registry = Runtime::global().registry();
  const OpId id = op_from(op, "get_available_kernels");
  std::vector<std::string> names;
  const auto add_of = [&](DeviceType type) {
    for (const auto& kernel : registry.kernels(id, type)) {
      if (std::find(names.begin(), names.end(), kernel->name()) == names.end()) names.emplace_back(kernel->name());
    }
  };
  if (!device.is_none()) {
    add_of(device_from(device).type);
    return names;
  }
  const WithoutGil released;
  for (const Device& here : Runtime::global().devices().devices()) add_of(here.type);
  return names;
}

Decision explain(nb::handle what) {
  const Problem problem = problem_from(what, "explain");
  sync_scope();
  const WithoutGil released;
  Runtime& runtime = Runtime::global();
  if (const std::string why = runtime.devices().why_absent(problem.device.type); !why.empty()) {
    fail(ErrorCode::not_supported, "explain",
         to_string(problem.device) + " is not here: " + why + "; ask about a device of devices()");
  }
  return runtime.dispatcher().explain(problem);
}

std::vector<Device> devices() {
  const WithoutGil released;
  return Runtime::global().devices().devices();
}

DeviceProfile device_profile(nb::handle device) {
  const Device where = device_from(device);
  const WithoutGil released;
  return Runtime::global().devices().profile(where);
}

/// The policy of threads and tasks that are in no scope.
KernelPolicy base_policy() {
  mirror(nullptr);
  KernelPolicy policy = Runtime::global().dispatcher().policy();
  sync_scope();
  return policy;
}

void bind_dispatcher(nb::module_& module) {
  nb::class_<Dispatcher>(module, "Dispatcher", "From a call to a kernel that runs.")
      .def_static(
          "instance", [] { return &Runtime::global().dispatcher(); }, nb::rv_policy::reference)
      .def(
          "get_policy", [](const Dispatcher&) { return base_policy(); }, "Of threads and tasks that are in no scope.")
      .def(
          "set_policy",
          [](Dispatcher& self, nb::handle policy) {
            const KernelPolicy given = policy_from(policy, "Dispatcher.set_policy");
            const WithoutGil released;
            given.check();
            self.set_policy(given);
          },
          nb::arg("policy").none(), nb::sig("def set_policy(self, policy: KernelPolicy) -> None"));
}

void bind_quarantine(nb::module_& module) {
  nb::class_<QuarantinedPlan>(
      module, "QuarantinedPlan",
      "A kernel that failed on a problem, in a call or when it was tuned, and is not run on it again.")
      .def_prop_ro(
          "problem", [](const QuarantinedPlan& self) { return self.problem; }, "What it failed on.")
      .def_prop_ro(
          "kernel", [](const QuarantinedPlan& self) { return to_python(std::string_view(self.kernel)); }, "Its name.")
      .def_prop_ro(
          "reason", [](const QuarantinedPlan& self) { return to_python(std::string_view(self.reason)); },
          "What was reported.")
      .def("__repr__", [](const QuarantinedPlan& self) {
        return printable("QuarantinedPlan(" + self.kernel + " for " + to_string(self.problem) + ": " + self.reason +
                         ")");
      });
  module.def(
      "quarantined", [] { return Runtime::global().dispatcher().quarantined(); },
      "Kernels that failed in calls or were quarantined by tuning in this process, and are not run again on those "
      "problems.");
  module.def(
      "clear_quarantine", [] { Runtime::global().dispatcher().clear_quarantine(); },
      "Allows what quarantined() lists to run again; the store is left as it is.");
}

}  // namespace

void bind_inquiry(nb::module_& module) {
  bind_dispatcher(module);
  bind_quarantine(module);
  module.def("get_available_kernels", &available_kernels, nb::arg("op_name").none(),
             nb::arg("device").none() = nb::none(),
             nb::sig("def get_available_kernels(op_name: str, device: object = None) -> list[str]"),
             "The kernels of an op in the order they are preferred: those of a device, or of all that are here.");
  module.def("explain_problem", &explain, nb::arg("problem").none(),
             nb::sig("def explain_problem(problem: object) -> Decision"));
  module.def("devices", &devices, "Every device that can be used, the CPU first.");
  module.def("device_profile", &device_profile, nb::arg("device").none() = "cpu",
             nb::sig("def device_profile(device: object = \"cpu\") -> DeviceProfile"),
             "All that rules and kernels may ask of a device.");
}

}  // namespace xpuruntime::python
