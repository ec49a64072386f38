#include "xpuruntime/precision/amp_registry.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/arguments.h"
#include "python/errors.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

AmpConfig config_or_default(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<AmpConfig>(value)) return nb::cast<AmpConfig>(value);
  raise_type_error("[AmpRegistry] config is " + a_python_type(value) +
                   "; pass an AmpConfig, such as AmpConfig.create_bf16()");
}

bool register_rule(AmpRegistry& registry, nb::handle rule) {
  if (nb::isinstance<OpPrecisionRule>(rule)) return registry.register_rule(nb::cast<OpPrecisionRule>(rule));
  raise_type_error("[AmpRegistry.register_rule] rule is " + a_python_type(rule) + "; pass an OpPrecisionRule");
}

nb::dict all_rules(const AmpRegistry& registry) {
  nb::dict rules;
  for (const auto& [op, rule] : registry.get_all_rules()) rules[to_python(to_string(op))] = nb::cast(rule);
  return rules;
}

std::vector<std::string> texts(std::span<const std::string_view> names) { return {names.begin(), names.end()}; }

void bind_registering(nb::class_<AmpRegistry>& registry) {
  registry
      .def(
          "register_whitelist",
          [](AmpRegistry& self, nb::handle op, nb::handle priority) {
            self.register_whitelist(op_from(op, "register_whitelist"), priority_from(priority, "register_whitelist"));
          },
          nb::arg("op").none(), nb::arg("priority").none() = 0,
          nb::sig("def register_whitelist(self, op: str, priority: int = 0) -> None"),
          "Lower precision, backward as forward.")
      .def(
          "register_blacklist",
          [](AmpRegistry& self, nb::handle op, nb::handle priority) {
            self.register_blacklist(op_from(op, "register_blacklist"), priority_from(priority, "register_blacklist"));
          },
          nb::arg("op").none(), nb::arg("priority").none() = 0,
          nb::sig("def register_blacklist(self, op: str, priority: int = 0) -> None"),
          "Higher precision, backward as forward.")
      .def(
          "register_custom_op",
          [](AmpRegistry& self, nb::handle op, nb::handle forward, nb::handle backward, nb::handle priority) {
            self.register_custom_op(op_from(op, "register_custom_op"), data_type_from(forward),
                                    data_type_from(backward), priority_from(priority, "register_custom_op"));
          },
          nb::arg("op").none(), nb::arg("forward").none(), nb::arg("backward").none(), nb::arg("priority").none() = 0,
          nb::sig(
              "def register_custom_op(self, op: str, forward: object, backward: object, priority: int = 0) -> None"),
          "These dtypes, whatever the config says.")
      .def("register_rule", register_rule, nb::arg("rule").none(),
           nb::sig("def register_rule(self, rule: OpPrecisionRule) -> bool"),
           "False where a rule of higher priority stays.")
      .def(
          "unregister", [](AmpRegistry& self, nb::handle op) { return self.unregister(op_from(op, "unregister")); },
          nb::arg("op").none(), nb::sig("def unregister(self, op: str) -> bool"),
          "Removes the user's rule, which brings the default back; False if there is none.")
      .def("clear", &AmpRegistry::clear, "Removes all rules, the defaults too: then each op's category decides.");
}

void bind_asking(nb::class_<AmpRegistry>& registry) {
  registry
      .def(
          "get_rule", [](const AmpRegistry& self, nb::handle op) { return self.get_rule(op_from(op, "get_rule")); },
          nb::arg("op").none(), nb::sig("def get_rule(self, op: str) -> OpPrecisionRule | None"),
          "A user's rule or the default; None where only the op's category decides.")
      .def(
          "rule_in_force",
          [](const AmpRegistry& self, nb::handle op) { return self.rule_in_force(op_from(op, "rule_in_force")); },
          nb::arg("op").none(), nb::sig("def rule_in_force(self, op: str) -> OpPrecisionRule"))
      .def(
          "source",
          [](const AmpRegistry& self, nb::handle op) {
            return to_python(to_string(self.source(op_from(op, "source"))));
          },
          nb::arg("op").none(), nb::sig("def source(self, op: str) -> str"),
          "Who the rule in force comes from: \"user\", \"default\" or \"category\".")
      .def(
          "get_forward_dtype",
          [](const AmpRegistry& self, nb::handle op, nb::handle input) {
            return to_python(self.get_forward_dtype(op_from(op, "get_forward_dtype"), data_type_from(input)));
          },
          nb::arg("op").none(), nb::arg("input_dtype").none(),
          nb::sig("def get_forward_dtype(self, op: str, input_dtype: object) -> str"))
      .def(
          "get_backward_dtype",
          [](const AmpRegistry& self, nb::handle op, nb::handle input) {
            return to_python(self.get_backward_dtype(op_from(op, "get_backward_dtype"), data_type_from(input)));
          },
          nb::arg("op").none(), nb::arg("input_dtype").none(),
          nb::sig("def get_backward_dtype(self, op: str, input_dtype: object) -> str"))
      .def(
          "is_whitelisted",
          [](const AmpRegistry& self, nb::handle op) { return self.is_whitelisted(op_from(op, "is_whitelisted")); },
          nb::arg("op").none(), nb::sig("def is_whitelisted(self, op: str) -> bool"), "Lower precision by a rule.")
      .def(
          "is_blacklisted",
          [](const AmpRegistry& self, nb::handle op) { return self.is_blacklisted(op_from(op, "is_blacklisted")); },
          nb::arg("op").none(), nb::sig("def is_blacklisted(self, op: str) -> bool"), "Higher precision by a rule.")
      .def("get_all_rules", all_rules, nb::sig("def get_all_rules(self) -> dict[str, OpPrecisionRule]"));
}

void apply_default_rules(nb::handle registry) {
  if (nb::isinstance<AmpRegistry>(registry)) {
    return DefaultAmpRules::apply_default_rules(*nb::inst_ptr<AmpRegistry>(registry));
  }
  raise_type_error("[apply_default_rules] registry is " + a_python_type(registry) +
                   "; pass an AmpRegistry, such as the runtime's: amp()");
}

}  // namespace

void bind_amp_registry(nb::module_& module) {
  nb::class_<AmpRegistry> registry(module, "AmpRegistry",
                                   "Which op runs in which precision, forward and backward. Starts with the default "
                                   "rules.");
  registry
      .def(
          "__init__", [](AmpRegistry* self, nb::handle config) { new (self) AmpRegistry(config_or_default(config)); },
          nb::arg("config").none() = nb::none(), nb::sig("def __init__(self, config: AmpConfig | None = None) -> None"))
      .def_prop_ro("config", [](const AmpRegistry& self) { return self.config(); });
  bind_registering(registry);
  bind_asking(registry);
  nb::class_<DefaultAmpRules>(module, "DefaultAmpRules", "The rules that a registry starts with.")
      .def_static(
          "default_whitelist", [] { return texts(DefaultAmpRules::default_whitelist()); },
          "Ops that are safe in low precision.")
      .def_static(
          "default_blacklist", [] { return texts(DefaultAmpRules::default_blacklist()); },
          "Ops that need the higher one.")
      .def_static("apply_default_rules", apply_default_rules, nb::arg("registry").none(),
                  nb::sig("def apply_default_rules(registry: AmpRegistry) -> None"),
                  "Puts the defaults in their tier below every rule of the user's, which stay.");
  module.def(
      "amp", [] { return &Runtime::global().amp(); }, nb::rv_policy::reference,
      "The precision rules that autocast takes where none are named.");
}

}  // namespace xpuruntime::python
