#include "python/registered_ops.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "core/printable.h"
#include "python/arguments.h"
#include "python/callables.h"
#include "python/errors.h"
#include "python/types.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::python {
namespace {

constexpr const char* in_register_op = "register_op";

/// All that an op of a Python program points to, for as long as the process lives: so long ops stay.
struct RegisteredOp {
  std::deque<std::string> texts = {};
  std::vector<AttributeSpec> attributes = {};
  std::vector<InputSpec> inputs = {};
  std::vector<Parameter> parameters = {};
  InternedNames names = {};
  Signature signature = {};
  std::optional<Callable> infer = {};

  const char* keep(std::string text) {
    if (text.find('\0') != std::string::npos) {
      fail(ErrorCode::invalid_argument, in_register_op, "a name contains a NUL; use letters, digits and underscores");
    }
    return texts.emplace_back(std::move(text)).c_str();
  }
};

Mutex mutex;
std::map<OpId, RegisteredOp*>& registered() {
  static auto* const ops = new std::map<OpId, RegisteredOp*>;
  return *ops;
}

RegisteredOp* find_registered(OpId op) {
  const std::lock_guard lock(mutex);
  const auto found = registered().find(op);
  return found == registered().end() ? nullptr : found->second;
}

// --- outputs -------------------------------------------------------------------------------------------------------

TensorSpec spec_from(nb::handle value) {
  if (nb::isinstance<TensorSpec>(value)) {
    const TensorSpec& given = nb::cast<const TensorSpec&>(value);
    return make_spec(given.dtype, given.shape);
  }
  if (!nb::isinstance<nb::tuple>(value) || nb::len(value) != 2) {
    throw std::runtime_error("it returned " + a_python_type(value) +
                             "; return an input, a tuple (dtype, shape), or a list of them");
  }
  const auto pair = nb::cast<nb::tuple>(value);
  return make_spec(data_type_from(pair[0]), Dims(integers_from(pair[1], "infer", "the shape")));
}

std::vector<TensorSpec> infer_like_first(std::span<const TensorSpec> inputs, const Attributes&) {
  return {make_spec(inputs[0].dtype, inputs[0].shape)};
}

/// One function for all of them: the attributes say which op it is.
std::vector<TensorSpec> infer_in_python(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const RegisteredOp* op = find_registered(attributes.op());
  if (op == nullptr) fail(ErrorCode::internal, in_register_op, "an op without its function; report this");
  std::vector<TensorSpec> outputs;
  const auto failure = call_back(*op->infer, [&](nb::handle function) {
    nb::list specs;
    for (const TensorSpec& input : inputs) specs.append(own(input));
    const nb::object made = function(specs, **attribute_values(attributes));
    if (!nb::isinstance<nb::list>(made)) return outputs.push_back(spec_from(made));
    for (const nb::handle output : made) outputs.push_back(spec_from(output));
  });
  if (!failure) return outputs;
  fail(failure->code == ErrorCode::device_error ? ErrorCode::invalid_argument : failure->code, op->signature.name,
       "its infer function raised " + failure->text + "; pass other inputs, or fix the function");
}

// --- attributes ----------------------------------------------------------------------------------------------------

[[noreturn]] void refuse_default(const std::string& name, nb::handle value) {
  raise_type_error("[register_op] attribute " + name + " has " + python_repr(value) +
                   " as its default; give a bool, an int, a float, a list of equal ints (empty: of any length), or a "
                   "tuple of names, the first being the default");
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "|") + part;
  return text;
}

/// A list of ints, all alike, as an op's defaults are.
void set_list_default(AttributeSpec& spec, nb::handle value) {
  const std::vector<std::int64_t> elements = integers_from(value, in_register_op, "an attribute's default");
  for (const std::int64_t element : elements) {
    if (element != elements.front()) refuse_default(std::string(spec.name), value);
  }
  if (elements.size() > max_rank) refuse_default(std::string(spec.name), value);
  spec.kind = AttributeKind::integers;
  spec.length = static_cast<std::uint8_t>(elements.size());
  spec.default_value = elements.empty() ? 0 : elements.front();
}

/// Its kind follows from the default.
AttributeSpec attribute_from(RegisteredOp& op, const std::string& name, nb::handle value) {
  AttributeSpec spec{.name = op.keep(name)};
  if (nb::isinstance<nb::bool_>(value)) {
    spec.kind = AttributeKind::boolean;
    spec.default_value = value.ptr() == Py_True;
  } else if (PyFloat_Check(value.ptr())) {
    spec.kind = AttributeKind::real;
    spec.default_value = std::bit_cast<std::int64_t>(nb::cast<double>(value));
  } else if (nb::isinstance<nb::list>(value)) {
    set_list_default(spec, value);
  } else if (nb::isinstance<nb::tuple>(value) && nb::len(value) != 0) {
    spec.kind = AttributeKind::choice;
    spec.choices = op.keep(joined(texts_from(value, in_register_op, "an attribute's choices")));
  } else if (PyLong_Check(value.ptr())) {
    spec.default_value = integer_from(value, in_register_op, name.c_str());
  } else {
    refuse_default(name, value);
  }
  return spec;
}

// --- registering ---------------------------------------------------------------------------------------------------

OpCategory category_from(nb::handle value) {
  const std::string name = text_from(value, in_register_op, "category");
  std::vector<std::string_view> known;
  for (int i = 0; i <= static_cast<int>(OpCategory::movement); ++i) {
    known.push_back(to_string(static_cast<OpCategory>(i)));
    if (known.back() == name) return static_cast<OpCategory>(i);
  }
  fail_unknown(in_register_op, "category", name, known);
}

void add_inputs(RegisteredOp& op, OpCategory category, nb::handle names, bool optional) {
  for (const std::string& name : texts_from(names, in_register_op, optional ? "optional_inputs" : "inputs")) {
    op.parameters.push_back(optional ? Parameter{op.keep(name), ParameterKind::optional_input, "None"}
                                     : Parameter{op.keep(name)});
    InputSpec& spec = op.inputs.emplace_back(usual_input(category, op.inputs.size()));
    spec.name = op.parameters.back().name;
    spec.optional = optional;
  }
}

void add_attributes(RegisteredOp& op, nb::handle attributes) {
  if (!nb::isinstance<nb::dict>(attributes)) {
    raise_type_error("[register_op] attributes is " + a_python_type(attributes) +
                     "; pass a dict of names and default values");
  }
  for (const auto& [key, value] : nb::cast<nb::dict>(attributes)) {
    const std::string name = text_from(key, in_register_op, "an attribute's name");
    const AttributeSpec& spec = op.attributes.emplace_back(attribute_from(op, name, value));
    const nb::object shown = spec.kind == AttributeKind::choice ? nb::object(value[0]) : nb::borrow(value);
    op.parameters.push_back({spec.name.data(), parameter_kind(spec.kind), op.keep(python_repr(shown)), nullptr, nullptr,
                             /*keyword_only=*/true});
  }
}

void check_parameters(const RegisteredOp& op, std::size_t inputs) {
  if (inputs == 0) fail(ErrorCode::invalid_argument, in_register_op, "inputs is empty; name at least one array");
  if (op.parameters.size() > max_parameters) {
    fail(ErrorCode::invalid_argument, in_register_op,
         std::to_string(op.parameters.size()) + " inputs and attributes are too many; use at most " +
             std::to_string(max_parameters));
  }
  for (const Parameter& parameter : op.parameters) {
    const std::string name = parameter.name;
    const auto same = [&](const Parameter& other) { return name == other.name; };
    const bool twice = std::count_if(op.parameters.begin(), op.parameters.end(), same) > 1;
    if (twice || name == "dtype" || name == "out" || PyUnicode_IsIdentifier(nb::str(name.c_str()).ptr()) != 1) {
      fail(ErrorCode::invalid_argument, in_register_op,
           "'" + shown(name) + "' cannot name a parameter: it is taken, or not an identifier; choose another name");
    }
  }
}

const Signature& keep(std::unique_ptr<RegisteredOp> op, const OpInfo& info) {
  // Another thread that finds the op at once waits here for its function.
  const std::lock_guard lock(mutex);
  const OpId id = register_op(info);
  op->signature = {.op = id, .name = op->texts.front().c_str(), .parameters = op->parameters, .names = &op->names};
  return registered().emplace(id, op.release()).first->second->signature;
}

nb::object register_op_in_python(nb::handle name, nb::handle infer, nb::handle inputs, nb::handle optional_inputs,
                                 nb::handle attributes, nb::handle category, nb::handle aliases) {
  auto op = std::make_unique<RegisteredOp>();
  OpInfo info{.name = op->keep(text_from(name, in_register_op, "name")), .category = category_from(category)};
  info.aliases = op->keep(joined(texts_from(aliases, in_register_op, "aliases")));
  add_inputs(*op, info.category, inputs, false);
  const std::size_t required = op->parameters.size();
  add_inputs(*op, info.category, optional_inputs, true);
  add_attributes(*op, attributes);
  check_parameters(*op, required);
  info.inputs = op->inputs;
  info.attributes = op->attributes;
  info.infer = infer_like_first;
  if (!infer.is_none()) {
    check_callable(infer, in_register_op, "infer");
    op->infer.emplace(infer);
    info.infer = infer_in_python;
  }
  for (std::size_t i = 0; i < op->parameters.size(); ++i) {
    op->names[i] = PyUnicode_InternFromString(op->parameters[i].name);
  }
  return function_of(keep(std::move(op), info));
}

/// The op's own name; None where there is no such op.
nb::object op_name(nb::handle name) {
  if (!nb::isinstance<nb::str>(name)) return nb::none();
  const auto op = find_op(text_from(name, "op_name", "name"));
  return op ? nb::object(to_python(to_string(*op))) : nb::none();
}

}  // namespace

const Signature* registered_signature(OpId op) {
  const RegisteredOp* found = find_registered(op);
  return found == nullptr ? nullptr : &found->signature;
}

void bind_registered_ops(nb::module_& module) {
  module.def("register_op", register_op_in_python, nb::arg("name").none(), nb::arg("infer").none(),
             nb::arg("inputs").none(), nb::arg("optional_inputs").none(), nb::arg("attributes").none(),
             nb::arg("category").none(), nb::arg("aliases").none());
  module.def("op_name", op_name, nb::arg("name").none(), nb::sig("def op_name(name: object) -> str | None"));
}

}  // namespace xpuruntime::python
