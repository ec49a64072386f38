#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <limits>

#include "core/printable.h"
#include "dispatch/by_precision.h"
#include "python/arguments.h"
#include "python/arrays.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/kernels.h"
#include "python/policy_values.h"
#include "python/scopes.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

KernelDtype kernel_dtype_from(nb::handle value) {
  if (nb::isinstance<KernelDtype>(value)) return nb::cast<KernelDtype>(value);
  if (nb::isinstance<nb::str>(value)) return parse_kernel_dtype(text_from(value, "KernelDtype", "the name"));
  return to_kernel_dtype(data_type_from(value));
}

std::vector<DataType> dtypes_from(nb::handle values, const char* function) {
  if (nb::isinstance<nb::str>(values) || !nb::isinstance<nb::iterable>(values)) {
    raise_type_error("[" + std::string(function) + "] input_dtypes is " + a_python_type(values) +
                     "; pass a list of dtypes");
  }
  std::vector<DataType> dtypes;
  for (const nb::handle value : values) dtypes.push_back(data_type_from(value));
  return dtypes;
}

std::vector<Tensor> tensors_from(nb::handle values) {
  std::vector<Tensor> tensors;
  for (const nb::handle value : values) tensors.push_back(tensor_from(value, Access::read, "tensor"));
  return tensors;
}

/// The seed's three forms: one tensor, several of them, or an op and dtypes.
KernelDtype get_kernel_dtype(const KernelSelector& self, nb::handle what, nb::handle input_dtypes) {
  if (!input_dtypes.is_none()) {
    const std::string op = text_from(what, "get_kernel_dtype", "op");
    return self.get_kernel_dtype(op, dtypes_from(input_dtypes, "get_kernel_dtype"));
  }
  if (nb::isinstance<nb::str>(what)) {
    fail(ErrorCode::invalid_argument, "get_kernel_dtype", "an op needs dtypes; pass them as input_dtypes");
  }
  if (nb::isinstance<nb::list>(what) || nb::isinstance<nb::tuple>(what)) {
    return self.get_kernel_dtype(tensors_from(what));
  }
  return self.get_kernel_dtype(tensor_from(what, Access::read, "tensor"));
}

bool is_kernel_available(const KernelSelector& self, nb::handle op, nb::handle dtype) {
  const std::string name = text_from(op, "is_kernel_available", "op");
  const KernelDtype requested = kernel_dtype_from(dtype);
  const WithoutGil release;
  return self.is_kernel_available(name, requested);
}

void register_kernel_capability(KernelSelector& self, nb::handle op, nb::handle capability) {
  const std::string name = text_from(op, "register_kernel_capability", "op");
  if (!nb::isinstance<KernelCapability>(capability)) {
    raise_type_error("[register_kernel_capability] capability is " + a_python_type(capability) +
                     "; pass a KernelCapability");
  }
  self.register_kernel_capability(name, nb::cast<KernelCapability>(capability));
}

KernelDtype select_best_kernel(const KernelSelector& self, nb::handle op, nb::handle input_dtypes,
                               nb::handle preferred) {
  const std::string name = text_from(op, "select_best_kernel", "op");
  const std::vector<DataType> dtypes = dtypes_from(input_dtypes, "select_best_kernel");
  const auto requested = preferred.is_none() ? std::nullopt : std::optional(kernel_dtype_from(preferred));
  const WithoutGil release;
  return self.select_best_kernel(name, dtypes, requested);
}

std::optional<KernelPerformanceStats> get_performance_stats(const KernelSelector& self, nb::handle op, nb::handle dtype,
                                                            nb::handle measured) {
  const std::string name = text_from(op, "get_performance_stats", "op");
  const KernelDtype requested = kernel_dtype_from(dtype);
  const bool with_measured = boolean_from(measured, "get_performance_stats", "measured");
  const WithoutGil release;
  const Dispatcher& dispatcher = Runtime::global().dispatcher();
  if (with_measured) dispatcher.collect_statistics();
  return self.get_performance_stats(name, requested, with_measured ? &dispatcher.statistics() : nullptr);
}

Decision select_kernel(const KernelSelector& self, nb::handle problem, nb::handle policy, nb::handle profile) {
  constexpr const char* function = "KernelSelector.select";
  std::optional<DeviceProfile> described;
  if (nb::isinstance<DeviceProfile>(profile)) {
    described = nb::cast<DeviceProfile>(profile);
  } else if (!profile.is_none()) {
    raise_type_error("[KernelSelector.select] profile is " + a_python_type(profile) + "; pass a DeviceProfile");
  }
  const Device device = described ? Device{described->type, 0} : Device{};
  Problem asked = nb::isinstance<nb::str>(problem) ? parse_problem(text_from(problem, function, "problem"), device)
                                                   : problem_from(problem, function);
  if (described && asked.device.type != described->type) {
    fail(ErrorCode::invalid_argument, function,
         "the problem is on " + to_string(asked.device) + ", the profile is of a device of type " +
             std::string(to_string(described->type)) + "; leave the device out of the problem");
  }
  sync_scope();
  std::optional<KernelPolicy> own;
  if (!policy.is_none()) own = policy_from(policy, function);
  const WithoutGil release;
  Dispatcher& dispatcher = Runtime::global().dispatcher();
  // A call's own choice: the locks and measured times in force count too.
  if (!described && !own && asked.device == self.device()) return dispatcher.explain(asked);
  const ScopePtr scope = dispatcher.current_scope();
  const KernelPolicy& in_force = own ? *own : scope->policy;
  asked.limits = stricter(asked.limits, in_force.limits());
  if (described)
    return decide_described(Runtime::global().registry(), asked, *described, in_force, scope->autocast, &self);
  return decide_by_precision(asked, precision_of(asked, in_force, scope->autocast),
                             [&](const Problem& one, bool) { return self.select(one, in_force).decision; });
}

KernelPerformanceStats stats_from(nb::handle operation, nb::handle dtype, nb::handle average, nb::handle least,
                                  nb::handle most, nb::handle count) {
  constexpr const char* name = "KernelPerformanceStats";
  const KernelPerformanceStats made{text_from(operation, name, "operation_name"),
                                    kernel_dtype_from(dtype),
                                    real_from(average, name, "average_execution_time"),
                                    real_from(least, name, "min_execution_time"),
                                    real_from(most, name, "max_execution_time"),
                                    static_cast<std::int64_t>(count_from(count, name, "execution_count"))};
  const bool ordered = made.min_execution_time >= 0 && made.min_execution_time <= made.average_execution_time &&
                       made.average_execution_time <= made.max_execution_time &&
                       made.max_execution_time < std::numeric_limits<double>::infinity();
  if (!ordered) {  // a NaN is in no order
    fail(ErrorCode::invalid_argument, name,
         "the times are not 0 <= min <= average <= max, all finite; give them in milliseconds");
  }
  return made;
}

std::uint64_t register_rule(KernelSelector& self, nb::handle op, nb::handle condition, nb::handle kernel,
                            nb::handle priority, nb::handle name) {
  constexpr const char* function = "register_rule";
  const OpId id = op_from(op, function);
  Condition asks = python_condition(condition);
  const std::string kernel_name = text_from(kernel, function, "kernel");
  const int rank = priority_from(priority, function);
  const std::string own_name = text_from(name, function, "name");
  const WithoutGil release;
  return self.register_rule(id, std::move(asks), kernel_name, rank, own_name);
}

bool unregister_rule(KernelSelector& self, nb::handle rule) {
  const std::uint64_t id = count_from(rule, "unregister_rule", "rule");
  const WithoutGil release;
  return self.unregister_rule(id);
}

nb::list rules(const KernelSelector& self, nb::handle op) {
  std::vector<Rule> found;
  const OpId id = op_from(op, "rules");
  {
    const WithoutGil release;
    found = self.rules(id);
  }
  nb::list list;
  for (const Rule& rule : found) {
    nb::dict row;
    row["op"] = to_python(to_string(rule.op));
    row["kernel"] = to_python(rule.kernel);
    row["priority"] = rule.priority;
    row["name"] = to_python(rule.name);
    row["id"] = rule.id;
    list.append(row);
  }
  return list;
}

std::shared_ptr<KernelSelector> selector_of(nb::handle device) {
  const Device where = device_from(device);
  const WithoutGil release;
  return Runtime::global().registry().get_or_create_selector(where);
}

void bind_precision_methods(nb::class_<KernelSelector>& selector) {
  selector
      .def("get_kernel_dtype", get_kernel_dtype, nb::arg("what").none(), nb::arg("input_dtypes").none() = nb::none(),
           nb::sig("def get_kernel_dtype(self, what: object, input_dtypes: Iterable[object] | None = None) -> "
                   "KernelDtype"),
           "Of one tensor, of a list of them, or of an op with the dtypes of its inputs.")
      .def("is_kernel_available", is_kernel_available, nb::arg("op").none(), nb::arg("dtype").none(),
           nb::sig("def is_kernel_available(self, op: str, dtype: KernelDtype | object) -> bool"),
           "Whether this device can run the op in this precision.")
      .def("register_kernel_capability", register_kernel_capability, nb::arg("op").none(), nb::arg("capability").none(),
           nb::sig("def register_kernel_capability(self, op: str, capability: KernelCapability) -> None"),
           "Replaces what was registered for the op and the capability's dtype.")
      .def(
          "find_kernel_capability",
          [](const KernelSelector& self, nb::handle op, nb::handle dtype) {
            return self.find_kernel_capability(text_from(op, "find_kernel_capability", "op"), kernel_dtype_from(dtype));
          },
          nb::arg("op").none(), nb::arg("dtype").none(),
          nb::sig("def find_kernel_capability(self, op: str, dtype: KernelDtype | object) -> KernelCapability | None"))
      .def("select_best_kernel", select_best_kernel, nb::arg("op").none(), nb::arg("input_dtypes").none(),
           nb::arg("preferred").none() = nb::none(),
           nb::sig("def select_best_kernel(self, op: str, input_dtypes: Iterable[object], "
                   "preferred: KernelDtype | object = None) -> KernelDtype"),
           "The preferred dtype if it is available, else that of the first floating input that is, else float32.")
      .def(
          "update_performance_stats",
          [](KernelSelector& self, nb::handle op, nb::handle dtype, nb::handle time) {
            self.update_performance_stats(text_from(op, "update_performance_stats", "op"), kernel_dtype_from(dtype),
                                          real_from(time, "update_performance_stats", "execution_time_ms"));
          },
          nb::arg("op").none(), nb::arg("dtype").none(), nb::arg("execution_time_ms").none(),
          nb::sig("def update_performance_stats(self, op: str, dtype: KernelDtype | object, "
                  "execution_time_ms: float) -> None"))
      .def("get_performance_stats", get_performance_stats, nb::arg("op").none(), nb::arg("dtype").none(),
           nb::arg("measured").none() = true,
           nb::sig("def get_performance_stats(self, op: str, dtype: KernelDtype | object, measured: bool = True) -> "
                   "KernelPerformanceStats | None"),
           "The times given here and, with `measured`, those of logged calls; None if there are none.");
}

/// As it could be written.
std::string repr_of_capability(const KernelCapability& self) {
  const auto boolean = [](bool value) { return value ? "True" : "False"; };
  char factors[96];
  std::snprintf(factors, sizeof factors, "performance_factor=%.9g, memory_efficiency=%.9g", self.performance_factor,
                self.memory_efficiency);
  return "KernelCapability(dtype='" + std::string(to_string(self.dtype)) +
         "', is_available=" + boolean(self.is_available) +
         ", supports_tensor_cores=" + boolean(self.supports_tensor_cores) + ", " + factors + ")";
}

void bind_values(nb::module_& module) {
  nb::enum_<KernelDtype>(module, "KernelDtype", "The precision of a kernel, as coarse as mixed precision speaks of it.")
      .value("float32", KernelDtype::float32)
      .value("float16", KernelDtype::float16)
      .value("bfloat16", KernelDtype::bfloat16)
      .value("mixed", KernelDtype::mixed)
      .value("auto_select", KernelDtype::auto_select);
  nb::class_<KernelCapability>(module, "KernelCapability", "What a device can do for one op in one precision.")
      .def(
          "__init__",
          [](KernelCapability* self, nb::handle dtype, nb::handle available, nb::handle cores, nb::handle performance,
             nb::handle memory) {
            constexpr const char* name = "KernelCapability";
            const KernelCapability made{kernel_dtype_from(dtype), boolean_from(available, name, "is_available"),
                                        boolean_from(cores, name, "supports_tensor_cores"),
                                        static_cast<float>(real_from(performance, name, "performance_factor")),
                                        static_cast<float>(real_from(memory, name, "memory_efficiency"))};
            made.check();
            new (self) KernelCapability(made);
          },
          nb::arg("dtype").none() = "f32", nb::arg("is_available").none() = true,
          nb::arg("supports_tensor_cores").none() = false, nb::arg("performance_factor").none() = 1.0,
          nb::arg("memory_efficiency").none() = 1.0,
          nb::sig("def __init__(self, dtype: KernelDtype | object = 'f32', is_available: bool = True, "
                  "supports_tensor_cores: bool = False, performance_factor: float = 1.0, "
                  "memory_efficiency: float = 1.0) -> None"))
      .def_ro("dtype", &KernelCapability::dtype)
      .def_ro("is_available", &KernelCapability::is_available)
      .def_ro("supports_tensor_cores", &KernelCapability::supports_tensor_cores)
      .def_ro("performance_factor", &KernelCapability::performance_factor, "Against f32, higher is faster.")
      .def_ro("memory_efficiency", &KernelCapability::memory_efficiency, "Against f32, higher needs less.")
      .def_static("create_float32", &KernelCapability::create_float32, nb::arg("supports_tensor_cores") = false)
      .def_static("create_float16", &KernelCapability::create_float16, nb::arg("supports_tensor_cores") = true)
      .def_static("create_bfloat16", &KernelCapability::create_bfloat16, nb::arg("supports_tensor_cores") = true)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const KernelCapability& self) { return static_cast<Py_ssize_t>(self.dtype); })
      .def("__repr__", repr_of_capability);
  nb::class_<KernelPerformanceStats>(module, "KernelPerformanceStats",
                                     "How long an op took in one precision, in milliseconds, over all its problems.")
      .def(
          "__init__",
          [](KernelPerformanceStats* self, nb::handle operation, nb::handle dtype, nb::handle average, nb::handle least,
             nb::handle most, nb::handle count) {
            new (self) KernelPerformanceStats(stats_from(operation, dtype, average, least, most, count));
          },
          nb::arg("operation_name").none(), nb::arg("dtype").none(), nb::arg("average_execution_time").none(),
          nb::arg("min_execution_time").none(), nb::arg("max_execution_time").none(), nb::arg("execution_count").none(),
          nb::sig("def __init__(self, operation_name: str, dtype: KernelDtype | object, average_execution_time: float, "
                  "min_execution_time: float, max_execution_time: float, execution_count: int) -> None"))
      .def_ro("operation_name", &KernelPerformanceStats::operation_name)
      .def_ro("dtype", &KernelPerformanceStats::dtype)
      .def_ro("average_execution_time", &KernelPerformanceStats::average_execution_time)
      .def_ro("min_execution_time", &KernelPerformanceStats::min_execution_time)
      .def_ro("max_execution_time", &KernelPerformanceStats::max_execution_time)
      .def_ro("execution_count", &KernelPerformanceStats::execution_count)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const KernelPerformanceStats& self) { return nb::hash(to_python(self.operation_name)); })
      .def("to_string", &KernelPerformanceStats::to_string, "One line, as str() gives it.")
      .def("__str__", &KernelPerformanceStats::to_string)
      .def("__repr__", [](const KernelPerformanceStats& self) {
        return printable("KernelPerformanceStats(" + self.to_string() + ")");
      });
}

}  // namespace

void bind_selector(nb::module_& module) {
  bind_values(module);
  nb::class_<KernelSelector> selector(module, "KernelSelector",
                                      "Chooses kernels for one device: its capabilities, the times they took and the "
                                      "user's rules. There is one for each device.");
  selector.def(nb::new_(&selector_of), nb::arg("device").none() = "cpu")
      .def_prop_ro("device", &KernelSelector::device)
      .def("register_rule", register_rule, nb::arg("op").none(), nb::arg("condition").none(), nb::arg("kernel").none(),
           nb::arg("priority").none() = 0, nb::arg("name").none() = "",
           nb::sig("def register_rule(self, op: str, condition: Callable[[Problem, DeviceProfile], object], "
                   "kernel: str, priority: int = 0, name: str = '') -> int"),
           "For this op, where the condition holds, use that kernel. Returns the rule's id.")
      .def("unregister_rule", unregister_rule, nb::arg("rule").none(),
           nb::sig("def unregister_rule(self, rule: int) -> bool"), "By its id; False if there is none.")
      .def("rules", rules, nb::arg("op").none(), nb::sig("def rules(self, op: str) -> list[dict[str, object]]"),
           "The user's rules of an op in the order they are tried.")
      .def(
          "select", select_kernel, nb::arg("problem").none(), nb::arg("policy").none() = nb::none(),
          nb::arg("profile").none() = nb::none(),
          nb::sig("def select(self, problem: Problem | str, policy: object = None, "
                  "profile: DeviceProfile | None = None) -> Decision"),
          "Chooses among the registered kernels as a call does here: as explain(). With a policy: under that one, with "
          "precision and casts as explain() has them, but without plans, locks and measured times. With a profile: "
          "the same, as on the device that it describes, which need not be here.")
      .def("__repr__", [](const KernelSelector& self) { return "KernelSelector('" + to_string(self.device()) + "')"; });
  bind_precision_methods(selector);
}

}  // namespace xpuruntime::python
