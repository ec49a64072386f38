#include "python/signatures.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <vector>

#include "core/op_table.h"
#include "python/arguments.h"
#include "python/registered_ops.h"
#include "python/types.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::python {
namespace {

using Kind = ParameterKind;

/// For as long as the process lives: so long functions point to it.
template <class Value>
Value& kept(Value value) {
  static auto* const all = new std::deque<Value>;
  return all->emplace_back(std::move(value));
}

const char* text(std::string_view text) { return kept(std::string(text)).c_str(); }

Parameter parameter_of(const InputSpec& spec) {
  Parameter parameter{text(spec.name)};
  if (spec.repeated) parameter.kind = Kind::inputs;
  if (spec.or_number) parameter.kind = Kind::input_or_number;
  if (!spec.optional) return parameter;
  parameter.kind = Kind::optional_input;
  parameter.fallback = "None";
  return parameter;
}

std::string_view python_name(const AttributeSpec& spec) {
  return spec.python_name.empty() ? spec.name : spec.python_name;
}

Parameter parameter_of(const AttributeSpec& spec) {
  Parameter parameter{text(python_name(spec)), parameter_kind(spec.kind), text(python_repr(default_of(spec)))};
  if (!spec.python_name.empty()) parameter.attribute = text(spec.name);
  return parameter;
}

/// The inputs and then the attributes, as a row writes parameters down.
std::string usual_parameters(const OpInfo& info) {
  std::string names;
  for (const InputSpec& spec : info.inputs) names += (names.empty() ? "" : ", ") + std::string(spec.name);
  for (const AttributeSpec& spec : info.attributes) names += ", " + std::string(python_name(spec));
  return names;
}

/// A parameter by what the row says of an input or attribute of this name; else one with a reader of its own.
Parameter named_parameter(const OpInfo& info, std::string_view name) {
  for (const InputSpec& spec : info.inputs) {
    if (spec.name == name) return parameter_of(spec);
  }
  for (const AttributeSpec& spec : info.attributes) {
    if (python_name(spec) == name) return parameter_of(spec);
  }
  return {text(name), Kind::special};
}

/// "name: annotation = default", of which the name alone must be there.
Parameter read_parameter(const OpInfo& info, std::string_view written) {
  const std::size_t equals = written.find('=');
  std::string_view head = written.substr(0, equals);
  while (head.ends_with(' ')) head.remove_suffix(1);
  const std::size_t colon = head.find(": ");
  Parameter parameter = named_parameter(info, head.substr(0, colon));
  if (colon != head.npos) {
    parameter.kind = Kind::special;
    parameter.annotation = text(head.substr(colon + 2));
    parameter.fallback = nullptr;
  }
  if (equals == written.npos) return parameter;
  std::string_view fallback = written.substr(equals + 1);
  while (fallback.starts_with(' ')) fallback.remove_prefix(1);
  parameter.fallback = fallback == "..." ? nullptr : text(fallback);
  return parameter;
}

std::vector<Parameter> read_parameters(const OpInfo& info, std::string_view written) {
  std::vector<Parameter> parameters;
  bool keyword_only = false;
  while (!written.empty()) {
    const std::size_t comma = written.find(", ");
    const std::string_view one = written.substr(0, comma);
    written = comma == written.npos ? std::string_view() : written.substr(comma + 2);
    if (one == "*") {
      keyword_only = true;
      continue;
    }
    parameters.push_back(read_parameter(info, one));
    parameters.back().keyword_only = keyword_only;
  }
  if (parameters.size() > max_parameters) fail(ErrorCode::internal, "ops", "too many parameters; report this");
  return parameters;
}

Signature signature_of(const OpInfo& info, std::string_view name, std::string_view parameters) {
  Signature signature{.op = info.id, .name = text(name), .outputs = info.outputs};
  signature.parameters = kept(read_parameters(info, parameters));
  InternedNames& names = kept(InternedNames());
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    names[i] = PyUnicode_InternFromString(signature.parameters[i].name);
  }
  signature.names = &names;
  add_hooks(signature);
  return signature;
}

std::vector<Signature> made_from_rows() {
  std::vector<Signature> all;
  for (const OpInfo& info : builtin_ops()) {
    const std::string parameters = info.parameters.empty() ? usual_parameters(info) : std::string(info.parameters);
    all.push_back(signature_of(info, info.name, parameters));
    if (info.functions.empty()) continue;
    const std::size_t open = info.functions.find('(');
    const std::string_view own = open == info.functions.npos ? std::string_view() : info.functions.substr(open + 1);
    all.push_back(
        signature_of(info, info.functions.substr(0, open), own.empty() ? parameters : own.substr(0, own.size() - 1)));
  }
  return all;
}

const char* annotation_of(const Parameter& parameter) {
  if (parameter.annotation != nullptr) return parameter.annotation;
  switch (parameter.kind) {
    case Kind::input:
      return "Array";
    case Kind::optional_input:
      return "Array | None";
    case Kind::input_or_number:
      return "Array | float";
    case Kind::inputs:
      return "Sequence[Array]";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::integers:
      return "int | Sequence[int]";
    case Kind::choice:
      return "str";
    case Kind::dtype:
      return "DType";
    case Kind::special:
      break;
  }
  return "Any";
}

bool has_own_dtype(const Signature& signature) {
  return std::any_of(signature.parameters.begin(), signature.parameters.end(),
                     [](const Parameter& parameter) { return parameter.kind == Kind::dtype; });
}

std::string text_of(const Parameter& parameter, bool typed) {
  std::string text = parameter.name;
  const std::string fallback = parameter.fallback == nullptr ? "" : parameter.fallback;
  if (!typed) return fallback.empty() ? text : text + "=" + fallback;
  text += std::string(": ") + annotation_of(parameter);
  if (fallback == "None" && !text.ends_with("None")) text += " | None";
  return fallback.empty() ? text : text + " = " + fallback;
}

}  // namespace

std::span<const Signature> signatures() {
  static const auto* const all = new std::vector<Signature>(made_from_rows());
  return *all;
}

nb::object default_of(const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return nb::bool_(spec.default_value != 0);
    case AttributeKind::real:
      return nb::float_(std::bit_cast<double>(spec.default_value));
    case AttributeKind::choice:
      return to_python(spec.choices.substr(0, spec.choices.find('|')));
    case AttributeKind::dtype:
      return to_python(to_string(static_cast<DataType>(spec.default_value)));
    case AttributeKind::integers:
      if (spec.length == 0) return nb::make_tuple();
      [[fallthrough]];
    default:
      return nb::int_(spec.default_value);
  }
}

ParameterKind parameter_kind(AttributeKind kind) {
  constexpr Kind kinds[] = {Kind::boolean, Kind::integer, Kind::real, Kind::integers, Kind::choice, Kind::dtype};
  return kinds[static_cast<std::size_t>(kind)];
}

const Signature& find_signature(std::string_view name) {
  for (const Signature& signature : signatures()) {
    if (name == signature.name) return signature;
  }
  const OpId op = parse_op(name);
  for (const Signature& signature : signatures()) {
    if (op == signature.op) return signature;
  }
  if (const Signature* registered = registered_signature(op)) return *registered;
  fail(ErrorCode::not_supported, "ops",
       "the op " + std::string(name) + " was registered by a plugin and has no function here; use its problem text");
}

std::string parameter_text(const Signature& signature, bool typed) {
  std::string text;
  bool keywords = false;
  for (const Parameter& parameter : signature.parameters) {
    if (parameter.keyword_only && !keywords) {
      text += "*, ";
      keywords = true;
    }
    text += text_of(parameter, typed) + ", ";
  }
  if (!keywords) text += "*, ";
  if (!has_own_dtype(signature)) text += typed ? "dtype: DType | None = None, " : "dtype=None, ";
  return text + (typed ? "out: Any = None" : "out=None");
}

}  // namespace xpuruntime::python
