#include "xpuruntime/graph/execution_policy.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/arguments.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/policy_values.h"
#include "python/session.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

constexpr const char* in_execution_policy = "ExecutionPolicy";
using Bound = nb::class_<ExecutionPolicy>;

std::string precision_from(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return text_from(value, in_execution_policy, "precision");
  return std::string(to_string(data_type_from(value)));
}

DeviceType target_from(nb::handle value, const char* name) {
  if (nb::isinstance<Device>(value)) return nb::cast<Device>(value).type;
  return parse_device_type(text_from(value, in_execution_policy, name));
}

/// Any lists of whole numbers; a text has letters, which would pass as a list.
std::vector<std::vector<std::int64_t>> shapes_from(nb::handle value) {
  std::vector<std::vector<std::int64_t>> shapes;
  if (value.is_none()) return shapes;
  const auto is_list = [](nb::handle list) {
    return nb::isinstance<nb::list>(list) || nb::isinstance<nb::tuple>(list);
  };
  const auto check = [&](nb::handle list) {
    if (is_list(list)) return;
    raise_type_error("[ExecutionPolicy] fixed_shapes has " + a_python_type(list) +
                     " in it; pass a list of shapes, such as [[1, 3, 224, 224]]");
  };
  check(value);
  for (const nb::handle shape : value) {
    check(shape);
    std::vector<std::int64_t>& extents = shapes.emplace_back();
    for (const nb::handle extent : shape)
      extents.push_back(integer_from(extent, in_execution_policy, "an extent of fixed_shapes"));
  }
  return shapes;
}

int level_from(nb::handle value) {
  const std::int64_t level = integer_from(value, in_execution_policy, "optimize_level");
  if (level >= 0 && level <= 3) return static_cast<int>(level);
  // Not left to check(): what no int holds would be another number there.
  fail(ErrorCode::invalid_argument, in_execution_policy,
       "optimize_level is " + std::to_string(level) + "; give 0, 1, 2 or 3");
}

/// In the order of the constructor.
struct Field {
  const char* name;
  void (*set)(ExecutionPolicy& policy, nb::handle value);
  nb::object (*get)(const ExecutionPolicy& policy);
  const char* type;
  const char* doc;
};

nb::object text(std::string_view value) { return to_python(value); }

const Field fields[] = {
    {"target", [](ExecutionPolicy& p, nb::handle value) { p.target = target_from(value, "target"); },
     [](const ExecutionPolicy& p) { return text(to_string(p.target)); }, "str", "Where to run: cuda, npu, cpu ..."},
    {"precision",
     [](ExecutionPolicy& p, nb::handle value) { p.precision = parse_engine_precision(precision_from(value)); },
     [](const ExecutionPolicy& p) { return text(engine_precision_name(p.precision)); }, "str",
     "fp32, fp16, bf16 or int8."},
    {"static_shape",
     [](ExecutionPolicy& p, nb::handle value) {
       p.static_shape = boolean_from(value, in_execution_policy, "static_shape");
     },
     [](const ExecutionPolicy& p) { return nb::object(nb::bool_(p.static_shape)); }, "bool",
     "Whether shapes are those of fixed_shapes, always."},
    {"fixed_shapes", [](ExecutionPolicy& p, nb::handle value) { p.fixed_shapes = shapes_from(value); },
     [](const ExecutionPolicy& p) { return p.fixed_shapes.empty() ? nb::none() : nb::cast(p.fixed_shapes); },
     "list[list[int]] | None", "The shape of each input."},
    {"allow_fallback",
     [](ExecutionPolicy& p, nb::handle value) {
       p.allow_fallback = value.is_none() ? std::nullopt : std::optional(target_from(value, "allow_fallback"));
     },
     [](const ExecutionPolicy& p) { return p.allow_fallback ? text(to_string(*p.allow_fallback)) : nb::none(); },
     "str | None", "Where to run instead; None: nowhere."},
    {"optimize_level", [](ExecutionPolicy& p, nb::handle value) { p.optimize_level = level_from(value); },
     [](const ExecutionPolicy& p) { return nb::object(nb::int_(p.optimize_level)); }, "int", "0 none to 3 aggressive."},
    {"cache_compiled",
     [](ExecutionPolicy& p, nb::handle value) {
       p.cache_compiled = boolean_from(value, in_execution_policy, "cache_compiled");
     },
     [](const ExecutionPolicy& p) { return nb::object(nb::bool_(p.cache_compiled)); }, "bool",
     "Whether compiled models are kept."},
    {"cache_dir",
     [](ExecutionPolicy& p, nb::handle value) { p.cache_dir = path_from(value, in_execution_policy, "cache_dir"); },
     [](const ExecutionPolicy& p) { return text(p.cache_dir); }, "str", "Where they are kept; empty: the usual place."},
    {"compile_timeout_ms",
     [](ExecutionPolicy& p, nb::handle value) {
       p.compile_timeout_ms = integer_from(value, in_execution_policy, "compile_timeout_ms");
     },
     [](const ExecutionPolicy& p) { return nb::object(nb::int_(p.compile_timeout_ms)); }, "int",
     "How long compiling may take."},
    {"execution_timeout_ms",
     [](ExecutionPolicy& p, nb::handle value) {
       p.execution_timeout_ms = integer_from(value, in_execution_policy, "execution_timeout_ms");
     },
     [](const ExecutionPolicy& p) { return nb::object(nb::int_(p.execution_timeout_ms)); }, "int",
     "How long one run may take."},
    {"engine", [](ExecutionPolicy& p, nb::handle value) { p.engine = text_from(value, in_execution_policy, "engine"); },
     [](const ExecutionPolicy& p) { return text(p.engine); }, "str", "auto, or the name of the engine that runs it."},
};

const Field& field_named(const std::string& name) {
  std::vector<std::string_view> known;
  for (const Field& field : fields) {
    if (name == field.name) return field;
    known.push_back(field.name);
  }
  fail_unknown(in_execution_policy, "field", name, known);
}

void construct(ExecutionPolicy* self, const nb::args& positional, const nb::kwargs& named) {
  ExecutionPolicy made;
  if (positional.size() > std::size(fields)) {
    raise_type_error("[ExecutionPolicy] " + std::to_string(positional.size()) + " arguments; there are " +
                     std::to_string(std::size(fields)) + " fields");
  }
  for (std::size_t i = 0; i < positional.size(); ++i) {
    if (named.contains(fields[i].name)) {
      raise_type_error("[ExecutionPolicy] " + std::string(fields[i].name) + " is given twice; give it once");
    }
    fields[i].set(made, positional[i]);
  }
  for (const auto& [name, value] : named) field_named(text_from(name, in_execution_policy, "a field")).set(made, value);
  made.check();
  new (self) ExecutionPolicy(std::move(made));
}

std::string repr(const ExecutionPolicy& self) {
  const ExecutionPolicy usual;
  std::string text;
  for (const Field& field : fields) {
    const nb::object value = field.get(self);
    if (value.equal(field.get(usual))) continue;
    text += (text.empty() ? "" : ", ") + std::string(field.name) + "=" + nb::cast<std::string>(nb::repr(value));
  }
  return "ExecutionPolicy(" + text + ")";
}

ExecutionPolicy load_execution_policy(nb::handle path) {
  const std::string name = path_from(path, "ExecutionPolicy.load");
  const WithoutGil released;
  return ExecutionPolicy::load(name);
}

void save_execution_policy(const ExecutionPolicy& self, nb::handle path) {
  const std::string name = path_from(path, "ExecutionPolicy.save");
  const ExecutionPolicy policy = self;  // another thread may change it meanwhile
  const WithoutGil released;
  policy.save(name);
}

ExecutionPolicy with_fallback(const ExecutionPolicy& self, nb::handle device) {
  ExecutionPolicy changed = self;
  field_named("allow_fallback").set(changed, device);
  return changed;
}

nb::list findings(const ExecutionPolicy& given) {
  const ExecutionPolicy policy = given;
  std::vector<PolicyFinding> found;
  {
    const WithoutGil released;
    put_engines_in_process();
    found = validate_policy(policy, Runtime::global().devices(), Runtime::global().engines());
  }
  nb::list texts;
  for (const PolicyFinding& finding : found) {
    texts.append(text(std::string(to_string(finding.severity)) + ": " + finding.field + ": " + finding.text));
  }
  return texts;
}

void bind_field(Bound& bound, const Field& field) {
  const std::string name = field.name;
  const std::string getter = "def " + name + "(self) -> " + field.type;
  const std::string setter = "def " + name + "(self, value: object) -> None";
  bound.def_prop_rw(
      field.name, [&field](const ExecutionPolicy& self) { return field.get(self); },
      [&field](ExecutionPolicy& self, nb::handle value) {
        ExecutionPolicy changed = self;
        field.set(changed, value);
        changed.check();
        self = std::move(changed);
      },
      nb::for_getter(nb::sig(getter.c_str())), nb::for_setter(nb::arg("value").none()),
      nb::for_setter(nb::sig(setter.c_str())), field.doc);
}

}  // namespace

void bind_execution_policy(nb::module_& module) {
  Bound bound(module, "ExecutionPolicy",
              "How an engine runs a whole model: where, how exact, on which shapes, how long.");
  bound.def("__init__", &construct,
            nb::sig("def __init__(self, target: str = 'cuda', precision: object = 'fp32', static_shape: bool = False,"
                    " fixed_shapes: Sequence[Sequence[int]] | None = None, allow_fallback: str | None = None,"
                    " optimize_level: int = 2, cache_compiled: bool = True, cache_dir: str | os.PathLike[str] = '',"
                    " compile_timeout_ms: int = 300000, execution_timeout_ms: int = 30000,"
                    " engine: str = 'auto') -> None"));
  for (const Field& field : fields) bind_field(bound, field);
  bound
      .def(
          "with_precision",
          [](const ExecutionPolicy& self, nb::handle precision) {
            return self.with_precision(precision_from(precision));
          },
          nb::arg("precision").none(), nb::sig("def with_precision(self, precision: object) -> ExecutionPolicy"),
          "This policy at another precision, all else kept.")
      .def("with_fallback", &with_fallback, nb::arg("device").none(),
           nb::sig("def with_fallback(self, device: str | None) -> ExecutionPolicy"),
           "This policy with another fallback, or none; all else kept.")
      .def(
          "check", [](const ExecutionPolicy& self) { self.check(); }, "Raises if it says something that cannot be.")
      .def("to_json", &ExecutionPolicy::to_json, "The text that save writes.")
      .def_static(
          "from_json",
          [](nb::handle json) {
            return ExecutionPolicy::from_json(text_from(json, "ExecutionPolicy.from_json", "json"));
          },
          nb::arg("json").none(), nb::sig("def from_json(json: str) -> ExecutionPolicy"), "Reads what to_json wrote.")
      .def(
          "to_dict", [](const ExecutionPolicy& self) { return from_json_text(self.to_json()); },
          nb::sig("def to_dict(self) -> dict[str, object]"), "As the file has it.")
      .def_static("load", load_execution_policy, nb::arg("path").none(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> ExecutionPolicy"),
                  "Reads a file. What is wrong in it is an error with line and column.")
      .def("save", save_execution_policy, nb::arg("path").none(),
           nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
           "Writes a file: the old one or the new one is there, never half.")
      .def("__copy__", [](const ExecutionPolicy& self) { return self; })
      .def(
          "__deepcopy__", [](const ExecutionPolicy& self, nb::handle) { return self; }, nb::arg("memo").none())
      .def("__getstate__", &ExecutionPolicy::to_json)
      .def("__setstate__",
           [](ExecutionPolicy& self, const std::string& json) {
             new (&self) ExecutionPolicy(ExecutionPolicy::from_json(json));
           })
      .def("__repr__", &repr)
      .def(
          "__eq__",
          [](const ExecutionPolicy& self, nb::handle other) {
            return nb::isinstance<ExecutionPolicy>(other) && self == nb::cast<const ExecutionPolicy&>(other);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  bound.attr("__hash__") = nb::none();  // it can be changed
  module.def("findings_of_execution_policy", &findings, nb::arg("policy"),
             nb::sig("def findings_of_execution_policy(policy: ExecutionPolicy) -> list[str]"));
}

}  // namespace xpuruntime::python
