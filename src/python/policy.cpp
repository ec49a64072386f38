#include "xpuruntime/select/policy.h"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>

#include "core/names.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/policy_values.h"
#include "python/scopes.h"
#include "python/session.h"
#include "python/types.h"
#include "xpuruntime/graph/execution_policy.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/validate_policy.h"

namespace xpuruntime::python {
namespace {

using Bound = nb::class_<KernelPolicy>;

void construct(KernelPolicy* self, const nb::args& positional, const nb::kwargs& fields) {
  if (positional.size() != 0) {
    raise_type_error(
        "[KernelPolicy] ops are keywords; write KernelPolicy(matmul=\"openblas\"), or KernelPolicy.load(path)");
  }
  KernelPolicy made;
  fill(made, fields);
  new (self) KernelPolicy(std::move(made));
}

nb::object to_dict(const KernelPolicy& self) { return from_json_text(self.to_json()); }

KernelPolicy from_json(nb::handle json) {
  return KernelPolicy::from_json(text_from(json, "KernelPolicy.from_json", "json"));
}

KernelPolicy load_policy(nb::handle path) {
  const std::string name = path_from(path, "KernelPolicy.load");
  const WithoutGil released;
  return KernelPolicy::load(name);
}

void save_policy(const KernelPolicy& self, nb::handle path) {
  const std::string name = path_from(path, "KernelPolicy.save");
  const KernelPolicy policy = self;  // another thread may change it meanwhile
  const WithoutGil released;
  policy.save(name);
}

KernelPolicy merge(const KernelPolicy& self, nb::handle other) {
  return self.merge(policy_from(other, "KernelPolicy.merge"));
}

/// As the constructor takes it.
std::string repr(const KernelPolicy& self) {
  std::string text;
  const auto add = [&](nb::handle name, const nb::object& value) {
    text += (text.empty() ? "" : ", ") + nb::cast<std::string>(name) + "=" + nb::cast<std::string>(nb::str(value));
  };
  const auto document = nb::cast<nb::dict>(to_dict(self));
  for (const auto& [op, preference] : nb::cast<nb::dict>(document["preferences"])) add(op, nb::borrow(preference));
  for (const auto& [field, value] : document) {
    const std::string name = nb::cast<std::string>(field);
    if (name == "preferences") continue;
    // Files have its number.
    add(field, name == "auto_strategy" ? nb::object(to_python(to_string(*self.auto_strategy))) : nb::borrow(value));
  }
  return "KernelPolicy(" + text + ")";
}

// --- what it says of ops -------------------------------------------------------------------------------------------

KernelPolicy& set(KernelPolicy& self, nb::handle op, nb::handle kernel) {
  const std::string name = text_from(op, "KernelPolicy.set", "op");
  self.preferences[parse_op(name)] = preference_from(kernel, name);
  return self;
}

KernelPolicy& force(KernelPolicy& self, nb::handle op, nb::handle kernel) {
  return self.force(text_from(op, "KernelPolicy.force", "op"), text_from(kernel, "KernelPolicy.force", "kernel"));
}

nb::object get(const KernelPolicy& self, nb::handle op) {
  const KernelPreference* preference = self.get(text_from(op, "KernelPolicy.get", "op"));
  return preference == nullptr ? nb::none() : to_python(*preference);
}

bool remove(KernelPolicy& self, nb::handle op) { return self.remove(text_from(op, "KernelPolicy.remove", "op")); }

std::string requested_text(nb::handle value, const char* name) {
  return value.is_none() ? std::string() : text_from(value, "KernelPolicy.set_precision", name);
}

KernelPolicy& set_precision(KernelPolicy& self, nb::handle op, nb::handle forward, nb::handle backward) {
  return self.set_precision(text_from(op, "KernelPolicy.set_precision", "op"), requested_text(forward, "forward"),
                            requested_text(backward, "backward"));
}

bool remove_precision(KernelPolicy& self, nb::handle op) {
  return self.remove_precision(text_from(op, "KernelPolicy.remove_precision", "op"));
}

/// A part of the file's form, in which an op is found by any of its names. The mapping is read-only: a change to a copy
/// would be lost without a word.
nb::object part(const KernelPolicy& self, const char* name) {
  const auto document = nb::cast<nb::dict>(to_dict(self));
  const nb::object value = document.contains(name) ? nb::object(document[name]) : nb::object(nb::dict());
  return nb::module_::import_("xpuruntime._op_names").attr("OpMapping")(value);
}

/// A tuple: what is appended to a copy would be lost without a word.
nb::tuple rules(const KernelPolicy& self) {
  const auto document = nb::cast<nb::dict>(to_dict(self));
  return document.contains("rules") ? nb::tuple(nb::object(document["rules"])) : nb::tuple();
}

/// A field that files have too; set_field reads and checks it.
template <class Get>
void field(Bound& bound, const char* name, Get get, const char* type, const char* doc) {
  const std::string getter = "def " + std::string(name) + "(self) -> " + type;
  const std::string setter = "def " + std::string(name) + "(self, value: object) -> None";
  bound.def_prop_rw(
      name, [get](const KernelPolicy& self) { return std::invoke(get, self); },
      [name](KernelPolicy& self, nb::handle value) { set_field(self, name, value); },
      nb::for_getter(nb::sig(getter.c_str())), nb::for_setter(nb::arg("value").none()),
      nb::for_setter(nb::sig(setter.c_str())), doc);
}

void bind_fields(Bound& bound) {
  field(
      bound, "preferences", [](const KernelPolicy& self) { return part(self, "preferences"); },
      "Mapping[str, str | list[str] | dict[str, str]]",
      "What it says of each op, under the name that the op was given by; found by any. Read-only: use set.");
  field(bound, "rules", rules, "tuple[dict[str, object], ...]", "Declarative rules, as files have them.");
  field(
      bound, "precision", [](const KernelPolicy& self) { return part(self, "precision"); },
      "Mapping[str, str | dict[str, str]]", "The precision of single ops. Read-only: use set_precision.");
  field(bound, "auto_strategy", &KernelPolicy::auto_strategy, "AutoSelectStrategy | None",
        "How a kernel is chosen that nothing names; None: not set.");
  field(bound, "strategy", &KernelPolicy::auto_strategy, "AutoSelectStrategy | None", "The same as auto_strategy.");
  field(
      bound, "default_precision",
      [](const KernelPolicy& self) {
        return self.default_precision ? nb::object(to_python(precision_name(*self.default_precision))) : nb::none();
      },
      "str | None", "The dtype of calls that nothing else decides, such as \"fp16\"; None: their own.");
  field(bound, "workspace_limit_bytes", &KernelPolicy::workspace_limit_bytes, "int | None",
        "The most temporary memory that a kernel may ask for.");
  field(bound, "deterministic", &KernelPolicy::deterministic, "bool | None",
        "Whether only kernels run that give the same bits every time.");
  field(bound, "threads", &KernelPolicy::threads, "int | None", "The most threads that one call may use on the CPU.");
}

void bind_ops_of(Bound& bound) {
  bound
      .def("set", &set, nb::arg("op_name").none(), nb::arg("kernel_name").none(), nb::rv_policy::reference,
           nb::sig("def set(self, op_name: str, kernel_name: str | Sequence[str] | Mapping[str, str]) -> KernelPolicy"),
           "Prefers a kernel for an op, a list of them in order, or forces one. Returns the policy itself.")
      .def("set_order", &set, nb::arg("op_name").none(), nb::arg("kernels").none(), nb::rv_policy::reference,
           nb::sig("def set_order(self, op_name: str, kernels: Sequence[str]) -> KernelPolicy"),
           "Prefers kernels in this order.")
      .def("force", &force, nb::arg("op_name").none(), nb::arg("kernel_name").none(), nb::rv_policy::reference,
           nb::sig("def force(self, op_name: str, kernel_name: str) -> KernelPolicy"),
           "This kernel runs, or calls fail with the reason.")
      .def("get", &get, nb::arg("op_name").none(),
           nb::sig("def get(self, op_name: str) -> str | list[str] | dict[str, str] | None"),
           "What the policy says of an op; None: nothing.")
      .def("remove", &remove, nb::arg("op_name").none(), nb::sig("def remove(self, op_name: str) -> bool"),
           "Forgets an op; False where nothing was said of it.")
      .def("set_precision", &set_precision, nb::arg("op_name").none(), nb::arg("forward").none() = nb::none(),
           nb::arg("backward").none() = nb::none(), nb::rv_policy::reference,
           nb::sig("def set_precision(self, op_name: str, forward: str | None = None, backward: str | None = None)"
                   " -> KernelPolicy"),
           "\"lower\", \"higher\", \"keep\" or a dtype for each direction; None leaves one open.")
      .def("remove_precision", &remove_precision, nb::arg("op_name").none(),
           nb::sig("def remove_precision(self, op_name: str) -> bool"),
           "Forgets the precision of an op; False where none was set.");
}

void bind_whole(Bound& bound) {
  bound
      .def("merge", &merge, nb::arg("other").none(),
           nb::sig("def merge(self, other: KernelPolicy | Mapping[str, object]) -> KernelPolicy"),
           "This policy with the other's fields where those are set.")
      .def(
          "check", [](const KernelPolicy& self) { self.check(); }, "Raises if it says something that cannot be.")
      .def("to_json", &KernelPolicy::to_json, "The text that save writes.")
      .def_static("from_json", &from_json, nb::arg("json").none(), nb::sig("def from_json(json: str) -> KernelPolicy"),
                  "Reads what to_json wrote.")
      .def("to_dict", &to_dict, nb::sig("def to_dict(self) -> dict[str, object]"), "As the file has it.")
      .def_static("load", load_policy, nb::arg("path").none(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> KernelPolicy"),
                  "Reads a file. What is wrong in it is an error with line and column.")
      .def("save", save_policy, nb::arg("path").none(), nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
           "Writes a file: the old one or the new one is there, never half.")
      .def("_get_internal", [](nb::handle self) { return nb::borrow(self); })
      .def("__copy__", [](const KernelPolicy& self) { return self; })
      .def(
          "__deepcopy__", [](const KernelPolicy& self, nb::handle) { return self; }, nb::arg("memo").none())
      .def("__getstate__", &KernelPolicy::to_json)
      .def("__setstate__",
           [](KernelPolicy& self, const std::string& json) { new (&self) KernelPolicy(KernelPolicy::from_json(json)); })
      .def("__repr__", &repr)
      .def(
          "__eq__",
          [](const KernelPolicy& self, nb::handle other) {
            return nb::isinstance<KernelPolicy>(other) && self == nb::cast<const KernelPolicy&>(other);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  bound.attr("__hash__") = nb::none();  // it can be changed
}

// --- in force ------------------------------------------------------------------------------------------------------

KernelPolicy as_policy(nb::handle value) { return policy_from(value, "KernelPolicy"); }

void set_policy(const KernelPolicy& given) {
  const KernelPolicy policy = given;
  const WithoutGil released;
  policy.check();
  Runtime::global().dispatcher().set_policy(policy);
}

KernelPolicy policy_in_force() {
  sync_scope();
  return Runtime::global().dispatcher().policy();
}

nb::list texts_of(const std::vector<PolicyFinding>& findings) {
  nb::list texts;
  for (const PolicyFinding& finding : findings) {
    const std::string place = finding.line == 0 ? ""
                                                : "line " + std::to_string(finding.line) + ", column " +
                                                      std::to_string(finding.column) + ": ";
    texts.append(to_python(std::string_view(place + std::string(to_string(finding.severity)) + ": " + finding.field +
                                            ": " + finding.text)));
  }
  return texts;
}

nb::list findings_of_file(nb::handle path, nb::handle device) {
  const std::string name = path_from(path, "validate_policy");
  const Device where = device_from(device);
  std::vector<PolicyFinding> findings;
  {
    const WithoutGil released;
    put_engines_in_process();
    findings = validate_policy_file(name, Runtime::global().registry(), where, Runtime::global().engines());
  }
  return texts_of(findings);
}

nb::list findings_of_policy(const KernelPolicy& given, nb::handle device) {
  const Device where = device_from(device);
  const KernelPolicy policy = given;
  std::vector<PolicyFinding> findings;
  {
    const WithoutGil released;
    findings = validate_policy(policy, Runtime::global().registry(), where);
  }
  return texts_of(findings);
}

}  // namespace

void bind_policy(nb::module_& module) {
  nb::enum_<Strategy>(module, "AutoSelectStrategy",
                      "How a kernel is chosen where neither a policy nor a rule names one.")
      .value("FIRST_SUPPORTED", Strategy::first_supported, "The first in the backend's order that can run it.")
      .value("BEST_PERFORMANCE", Strategy::best_performance, "The fastest that was measured.")
      .value("LOWEST_MEMORY", Strategy::lowest_memory, "The one that needs the least temporary memory.");
  Bound bound(module, "KernelPolicy", "Which kernel for which op, and the bounds. Ops and fields are keywords.");
  bound.def(
      "__init__", &construct,
      nb::sig("def __init__(self, *, preferences: Mapping[str, object] | None = None,"
              " rules: Sequence[Mapping[str, object]] | None = None, precision: Mapping[str, object] | None = None,"
              " strategy: AutoSelectStrategy | str | int | None = None,"
              " auto_strategy: AutoSelectStrategy | str | int | None = None, default_precision: object = None,"
              " workspace_limit_bytes: int | None = None, deterministic: bool | None = None,"
              " threads: int | None = None, **ops: str | Sequence[str] | Mapping[str, str]) -> None"));
  bind_ops_of(bound);
  bind_fields(bound);
  bind_whole(bound);
  module.def("as_policy", &as_policy, nb::arg("value").none(), nb::sig("def as_policy(value: object) -> KernelPolicy"));
  module.def("set_policy", &set_policy, nb::arg("policy"));
  module.def("policy_in_force", &policy_in_force);
  module.def("findings_of_file", &findings_of_file, nb::arg("path").none(), nb::arg("device").none(),
             nb::sig("def findings_of_file(path: object, device: object) -> list[str]"));
  module.def("findings_of_policy", &findings_of_policy, nb::arg("policy"), nb::arg("device").none(),
             nb::sig("def findings_of_policy(policy: KernelPolicy, device: object) -> list[str]"));
}

}  // namespace xpuruntime::python
