#include <nanobind/operators.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/arguments.h"
#include "python/errors.h"
#include "python/types.h"
#include "xpuruntime/precision/op_precision_rule.h"

namespace xpuruntime::python {
namespace {

std::optional<DataType> optional_dtype(nb::handle value) {
  return value.is_none() ? std::nullopt : std::optional(data_type_from(value));
}

nb::object dtype_or_none(std::optional<DataType> dtype) { return dtype ? nb::object(to_python(*dtype)) : nb::none(); }

AmpConfig make_config(nb::handle enabled, nb::handle target, nb::handle higher) {
  const AmpConfig config{boolean_from(enabled, "AmpConfig", "enabled"), data_type_from(target), data_type_from(higher)};
  config.check();
  return config;
}

OpPrecision precision_from(nb::handle value, const char* name) {
  if (nb::isinstance<OpPrecision>(value)) return nb::cast<OpPrecision>(value);
  const std::string text = text_from(value, "OpPrecisionRule", name);
  constexpr OpPrecision all[] = {OpPrecision::higher, OpPrecision::lower, OpPrecision::keep, OpPrecision::custom};
  std::vector<std::string_view> names;
  for (const OpPrecision precision : all) {
    if (to_string(precision) == text) return precision;
    names.push_back(to_string(precision));
  }
  fail_unknown("OpPrecisionRule", "precision", text, names);
}

OpPrecisionRule make_rule(nb::handle op, nb::handle forward, nb::handle backward, nb::handle custom_forward,
                          nb::handle custom_backward, nb::handle priority) {
  const OpPrecisionRule rule{op_from(op, "OpPrecisionRule"),
                             precision_from(forward, "forward_precision"),
                             precision_from(backward, "backward_precision"),
                             optional_dtype(custom_forward),
                             optional_dtype(custom_backward),
                             priority_from(priority, "OpPrecisionRule")};
  rule.check();
  return rule;
}

const AmpConfig& config_from(nb::handle value, const char* function) {
  if (nb::isinstance<AmpConfig>(value)) return *nb::inst_ptr<AmpConfig>(value);
  raise_type_error("[" + std::string(function) + "] config is " + a_python_type(value) +
                   "; pass an AmpConfig, such as AmpConfig.create_bf16()");
}

std::string repr_of(const OpPrecisionRule& rule) {
  return "OpPrecisionRule('" + std::string(to_string(rule.op)) + "', forward='" + to_string(rule.forward()) +
         "', backward='" + to_string(rule.backward()) + "', priority=" + std::to_string(rule.priority) + ")";
}

void bind_config(nb::module_& module) {
  nb::class_<AmpConfig>(module, "AmpConfig", "What lower and higher mean in a precision rule.")
      .def(
          "__init__",
          [](AmpConfig* self, nb::handle enabled, nb::handle target, nb::handle higher) {
            new (self) AmpConfig(make_config(enabled, target, higher));
          },
          nb::arg("enabled").none() = true, nb::arg("target_precision").none() = "bf16",
          nb::arg("higher_precision").none() = "f32",
          nb::sig("def __init__(self, enabled: bool = True, target_precision: object = 'bf16', "
                  "higher_precision: object = 'f32') -> None"))
      .def_ro("enabled", &AmpConfig::enabled, "False: rules change nothing at all.")
      .def_prop_ro("target_precision", [](const AmpConfig& self) { return to_python(self.target_precision); })
      .def_prop_ro("higher_precision", [](const AmpConfig& self) { return to_python(self.higher_precision); })
      .def_static("create_default", &AmpConfig::create_default)
      .def_static("create_fp16", &AmpConfig::create_fp16)
      .def_static("create_bf16", &AmpConfig::create_bf16)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const AmpConfig& self) { return nb::hash(to_python(to_string(self.target_precision))); })
      .def("__reduce__",
           [](const AmpConfig& self) {
             const auto fields =
                 nb::make_tuple(self.enabled, to_python(self.target_precision), to_python(self.higher_precision));
             return nb::make_tuple(nb::type<AmpConfig>(), fields);
           })
      .def("__repr__", [](const AmpConfig& self) {
        return std::string("AmpConfig(enabled=") + (self.enabled ? "True" : "False") + ", target_precision='" +
               std::string(to_string(self.target_precision)) + "', higher_precision='" +
               std::string(to_string(self.higher_precision)) + "')";
      });
}

void bind_rule(nb::module_& module) {
  nb::enum_<OpPrecision>(module, "OpPrecision", "What a rule asks of one direction of an op.")
      .value("higher", OpPrecision::higher)
      .value("lower", OpPrecision::lower)
      .value("keep", OpPrecision::keep)
      .value("custom", OpPrecision::custom);
  nb::class_<OpPrecisionRule>(module, "OpPrecisionRule", "The precision of one op, forward and backward.")
      .def(
          "__init__",
          [](OpPrecisionRule* self, nb::handle op, nb::handle forward, nb::handle backward, nb::handle custom_forward,
             nb::handle custom_backward, nb::handle priority) {
            new (self) OpPrecisionRule(make_rule(op, forward, backward, custom_forward, custom_backward, priority));
          },
          nb::arg("op").none(), nb::arg("forward_precision").none(), nb::arg("backward_precision").none() = "keep",
          nb::arg("custom_forward_dtype").none() = nb::none(), nb::arg("custom_backward_dtype").none() = nb::none(),
          nb::arg("priority").none() = 0,
          nb::sig("def __init__(self, op: str, forward_precision: OpPrecision | str, "
                  "backward_precision: OpPrecision | str = 'keep', custom_forward_dtype: object = None, "
                  "custom_backward_dtype: object = None, priority: int = 0) -> None"),
          "Backward \"keep\" is as forward; \"custom\" needs its dtype.")
      .def_prop_ro("op", [](const OpPrecisionRule& self) { return to_python(to_string(self.op)); })
      .def_ro("forward_precision", &OpPrecisionRule::forward_precision)
      .def_ro("backward_precision", &OpPrecisionRule::backward_precision)
      .def_prop_ro(
          "custom_forward_dtype", [](const OpPrecisionRule& self) { return dtype_or_none(self.custom_forward_dtype); },
          nb::sig("def custom_forward_dtype(self) -> str | None"))
      .def_prop_ro(
          "custom_backward_dtype",
          [](const OpPrecisionRule& self) { return dtype_or_none(self.custom_backward_dtype); },
          nb::sig("def custom_backward_dtype(self) -> str | None"))
      .def_ro("priority", &OpPrecisionRule::priority)
      .def(
          "get_forward_dtype",
          [](const OpPrecisionRule& self, nb::handle config, nb::handle input) {
            return to_python(self.get_forward_dtype(config_from(config, "get_forward_dtype"), data_type_from(input)));
          },
          nb::arg("config").none(), nb::arg("input_dtype").none(),
          nb::sig("def get_forward_dtype(self, config: AmpConfig, input_dtype: object) -> str"))
      .def(
          "get_backward_dtype",
          [](const OpPrecisionRule& self, nb::handle config, nb::handle input) {
            return to_python(self.get_backward_dtype(config_from(config, "get_backward_dtype"), data_type_from(input)));
          },
          nb::arg("config").none(), nb::arg("input_dtype").none(),
          nb::sig("def get_backward_dtype(self, config: AmpConfig, input_dtype: object) -> str"))
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const OpPrecisionRule& self) { return nb::hash(to_python(to_string(self.op))); })
      .def("__repr__", repr_of);
}

}  // namespace

void bind_precision(nb::module_& module) {
  bind_config(module);
  bind_rule(module);
}

}  // namespace xpuruntime::python
