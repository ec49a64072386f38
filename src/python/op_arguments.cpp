// The first half of a call from Python: from arguments to arrays and attributes.

#include <nanobind/stl/string.h>

#include "core/elements.h"
#include "core/forward_call.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/op_call.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

using Kind = ParameterKind;

[[noreturn]] void refuse(const Signature& signature, const std::string& message) {
  raise_type_error("[" + std::string(signature.name) + "] " + message + "; call it as " + signature.name + "(" +
                   parameter_text(signature, false) + ")");
}

struct Names {
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* out = PyUnicode_InternFromString("out");
};

const Names& names() {
  static const Names* all = new Names;
  return *all;
}

bool same_name(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

bool is_array_kind(Kind kind) {
  return kind == Kind::input || kind == Kind::optional_input || kind == Kind::input_or_number || kind == Kind::inputs;
}

bool is_number(PyObject* value) {
  return PyFloat_Check(value) || PyLong_Check(value);  // bools are integers
}

}  // namespace

void write_number(std::byte* memory, DataType dtype, PyObject* value, const Where& where) {
  const bool is_bool = PyBool_Check(value);
  bool fits = false;
  if (is_floating(dtype)) {
    const nb::object number = is_bool ? nb::object(nb::int_(nb::handle(value))) : nb::borrow(value);
    fits = store_number(dtype, memory, real_from(number, where.function, where.argument));
  } else {
    const std::int64_t number = is_bool ? value == Py_True : integer_from(value, where.function, where.argument);
    fits = store_number(dtype, memory, number);
  }
  if (fits) return;
  where.fail(ErrorCode::invalid_argument,
             "the number does not fit " + std::string(to_string(dtype)) + ", the dtype of the array; use a wider one");
}

void OpCall::place(std::size_t parameter, PyObject* value) {
  if (values_[parameter] != nullptr) {
    refuse(signature_, "'" + std::string(signature_.parameters[parameter].name) + "' was given twice");
  }
  values_[parameter] = value;
}

void OpCall::place_keyword(PyObject* name, PyObject* value) {
  const InternedNames& known = *signature_.names;
  for (std::size_t i = 0; i < signature_.parameters.size(); ++i) {
    if (known[i] == name) return place(i, value);
  }
  if (names().out == name) return static_cast<void>(out_ = value);
  for (std::size_t i = 0; i < signature_.parameters.size(); ++i) {
    if (same_name(known[i], name)) return place(i, value);
  }
  if (same_name(names().out, name)) return static_cast<void>(out_ = value);
  if (same_name(names().dtype, name)) return static_cast<void>(dtype_ = value);
  refuse(signature_, "there is no parameter " + python_repr(nb::handle(name)));
}

void OpCall::check_given() const {
  for (std::size_t i = 0; i < signature_.parameters.size(); ++i) {
    const Parameter& parameter = signature_.parameters[i];
    if (values_[i] == nullptr && parameter.fallback == nullptr) {
      refuse(signature_, "'" + std::string(parameter.name) + "' is missing");
    }
    if (values_[i] == Py_None && (parameter.fallback == nullptr || std::string_view(parameter.fallback) != "None")) {
      const char* wanted = is_array_kind(parameter.kind) ? "; pass an array" : "; pass a value";
      refuse(signature_, std::string(parameter.name) + " is a NoneType" + wanted);
    }
  }
}

void OpCall::parse(PyObject* const* values, std::size_t count, PyObject* keywords) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= signature_.parameters.size() || signature_.parameters[i].keyword_only) {
      refuse(signature_, std::to_string(count) + " arguments are too many without a name");
    }
    values_[i] = values[i];
  }
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    place_keyword(PyTuple_GetItem(keywords, i), values[count + static_cast<std::size_t>(i)]);
  }
  check_given();
}

void OpCall::parse(const nb::tuple& positional, const nb::dict& keywords) {
  std::vector<PyObject*> values;
  for (const nb::handle value : positional) values.push_back(value.ptr());
  nb::list named;
  for (const auto [name, value] : keywords) {
    named.append(name);
    values.push_back(value.ptr());
  }
  const nb::tuple keyword_names(named);
  parse(values.data(), positional.size(), keyword_names.ptr());
}

PyObject* OpCall::value(std::string_view parameter) const {
  PyObject* found = values_[index_of(parameter)];
  return found == Py_None ? nullptr : found;
}

std::size_t OpCall::index_of(std::string_view parameter) const {
  for (std::size_t i = signature_.parameters.size(); i-- > 0;) {  // those that hooks ask for are among the last
    if (signature_.parameters[i].name == parameter) return i;
  }
  fail(ErrorCode::internal, signature_.name, "no parameter " + std::string(parameter) + "; report this");
}

bool OpCall::has_default(std::string_view parameter, std::string_view text) const {
  const char* fallback = signature_.parameters[index_of(parameter)].fallback;
  return fallback != nullptr && fallback == text;
}

void OpCall::replace(std::string_view parameter, nb::object object) {
  values_[index_of(parameter)] = object.ptr();
  kept_.push_back(std::move(object));
}

Attributes& OpCall::attributes() {
  if (!attributes_) attributes_.emplace(op_);
  return *attributes_;
}

BoundArray& OpCall::new_array() {
  if (array_count_ < few) return arrays_[array_count_++].emplace();
  return *more_arrays_.emplace_back(std::make_unique<BoundArray>());
}

void OpCall::bind_array(std::size_t parameter) {
  BoundArray& array = new_array();
  array.bind(values_[parameter], Access::read, where(signature_.parameters[parameter].name));
  by_parameter_[parameter] = &array;
  if (first_ == nullptr) first_ = &array;
  inputs_.push_back(&array.tensor());
}

// In the dtype of the array beside it. A fraction beside integers is f32, and so is what is not computed in that dtype.
void OpCall::bind_number(std::size_t parameter) {
  PyObject* value = values_[parameter];
  DataType dtype = input(0).dtype();
  const bool follows = input_spec(op_info(op_), inputs_.size()).follows_precision;
  if (!follows || (!is_floating(dtype) && PyFloat_Check(value))) dtype = DataType::float32;
  write_number(number_.data(), dtype, value, where(signature_.parameters[parameter].name));
  add_copied_input(Tensor(number_.data(), make_spec(dtype, {})));
}

void OpCall::bind_sequence(std::size_t parameter) {
  PyObject* value = values_[parameter];
  const char* name = signature_.parameters[parameter].name;
  const nb::object elements = nb::steal(PySequence_Tuple(value));
  if (!elements.is_valid() || array_type_of(value).kind != ArrayKind::none) {
    PyErr_Clear();
    raise_type_error("[" + std::string(function()) + "] " + name + " is " + a_python_type(value) +
                     "; pass a sequence of arrays");
  }
  kept_.push_back(elements);
  for (const nb::handle element : nb::iter(elements)) {
    BoundArray& array = new_array();
    array.bind(element.ptr(), Access::read, where(name));
    if (first_ == nullptr) first_ = &array;
    inputs_.push_back(&array.tensor());
  }
  if (inputs_.size() == 0) where(name).fail(ErrorCode::invalid_argument, "it is empty; pass at least one array");
}

void OpCall::set_attribute(const Parameter& parameter, PyObject* value) {
  const char* name = parameter.attribute == nullptr ? parameter.name : parameter.attribute;
  switch (parameter.kind) {
    case Kind::boolean:
      attributes().set(name, boolean_from(value, function(), parameter.name));
      return;
    case Kind::integer:
      attributes().set(name, integer_from(value, function(), parameter.name));
      return;
    case Kind::real:
      attributes().set_real(name, real_from(value, function(), parameter.name));
      return;
    case Kind::integers:
      attributes().set_list(name, integers_from(value, function(), parameter.name));
      return;
    case Kind::choice:
      attributes().set_choice(name, text_from(value, function(), parameter.name));
      return;
    case Kind::dtype:
      attributes().set(name, static_cast<std::int64_t>(data_type_from(value)));
      return;
    default:
      return;
  }
}

void OpCall::read_precision() {
  if (dtype_ == nullptr || dtype_ == Py_None) return;
  precision_ = data_type_from(dtype_);
  if (!is_floating(input(0).dtype()) && op_info(op_).category != OpCategory::lookup) {
    where("dtype").fail(ErrorCode::not_supported, "integers are not computed in another dtype; use ops.cast first");
  }
}

void OpCall::add_none() { add_input(Tensor(nullptr, no_input(), input(0).device())); }

void OpCall::bind() {
  if (signature_.before != nullptr) signature_.before(*this);
  std::size_t left_out = 0;  // before the next input
  for (std::size_t i = 0; i < signature_.parameters.size(); ++i) {
    const Parameter& parameter = signature_.parameters[i];
    PyObject* value = values_[i];
    if (value == nullptr || value == Py_None) {
      left_out += parameter.kind == Kind::optional_input ? 1 : 0;
      continue;
    }
    if (is_array_kind(parameter.kind)) {
      for (; left_out > 0 && may_be_none(op_info(op_), inputs_.size()); --left_out) add_none();
    }
    if (!is_array_kind(parameter.kind)) {
      set_attribute(parameter, value);
    } else if (parameter.kind == Kind::inputs) {
      bind_sequence(i);
    } else if (parameter.kind == Kind::input_or_number && is_number(value)) {
      bind_number(i);
    } else {
      bind_array(i);
    }
  }
  if (signature_.after != nullptr) signature_.after(*this);
  read_precision();
}

}  // namespace xpuruntime::python
