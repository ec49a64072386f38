#include "python/arguments.h"

#include <nanobind/stl/string.h>

#include "python/errors.h"
#include "python/types.h"

namespace xpuruntime::python {
namespace {

[[noreturn]] void refuse(nb::handle value, const char* function, const char* name, const std::string& wanted) {
  raise_type_error("[" + std::string(function) + "] " + name + " is " + a_python_type(value) + "; pass " + wanted);
}

/// After Python refused to convert it: what else was raised, by code of the value's own, goes on.
[[noreturn]] void refuse_unless_other(nb::handle value, const char* function, const char* name, const char* wanted) {
  const bool refused = PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
                       PyErr_ExceptionMatches(PyExc_NotImplementedError);  // a memoryview of several dims
  if (!refused) throw nb::python_error();
  PyErr_Clear();
  refuse(value, function, name, wanted);
}

/// Also one in an array: PyTorch's convert to 0 and 1.
bool is_boolean(nb::handle value) {
  if (PyLong_Check(value.ptr())) return PyBool_Check(value.ptr());
  const nb::object dtype = nb::steal(PyObject_GetAttrString(value.ptr(), "dtype"));
  if (dtype.is_valid()) return python_str(dtype).ends_with("bool");
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
  PyErr_Clear();
  return false;
}

/// A scalar, not an array; NumPy 2 calls it bool.
bool is_numpy_bool(nb::handle value) {
  const nb::handle type = value.type();
  return python_type(value).starts_with("bool") && python_str(nb::getattr(type, "__module__", nb::none())) == "numpy";
}

}  // namespace

std::string text_from(nb::handle value, const char* function, const char* name) {
  if (!nb::isinstance<nb::str>(value)) refuse(value, function, name, "a string");
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text != nullptr) return std::string(text, static_cast<std::size_t>(size));
  PyErr_Clear();
  fail(ErrorCode::invalid_argument, function,
       std::string(name) + " contains an unpaired surrogate; pass a valid string");
}

std::string path_from(nb::handle value, const char* function, const char* name) {
  const nb::object path = nb::steal(PyOS_FSPath(value.ptr()));
  if (!path.is_valid()) PyErr_Clear();
  if (!path.is_valid() || !nb::isinstance<nb::str>(path)) refuse(value, function, name, "a path: a str or a Path");
  // File names that are no UTF-8 come back as the bytes they are.
  const nb::object bytes = nb::steal(PyUnicode_EncodeFSDefault(path.ptr()));
  if (!bytes.is_valid()) {
    PyErr_Clear();
    fail(ErrorCode::invalid_argument, function, std::string(name) + " cannot be encoded as a file name; pass another");
  }
  const auto encoded = nb::cast<nb::bytes>(bytes);
  const std::string text(encoded.c_str(), encoded.size());
  if (text.find('\0') != text.npos) {
    fail(ErrorCode::invalid_argument, function, std::string(name) + " contains a NUL character; pass a file's name");
  }
  return text;
}

std::int64_t integer_from(nb::handle value, const char* function, const char* name) {
  if (PyIndex_Check(value.ptr()) == 0 || is_boolean(value)) refuse(value, function, name, "an integer");
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) refuse_unless_other(value, function, name, "an integer");
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) {
    fail(ErrorCode::invalid_argument, function, std::string(name) + " does not fit 64 bits; pass a smaller number");
  }
  return result;
}

std::uint64_t count_from(nb::handle value, const char* function, const char* name) {
  const std::int64_t number = integer_from(value, function, name);
  if (number < 0) {
    fail(ErrorCode::invalid_argument, function, std::string(name) + " is negative; pass 0 or more");
  }
  return static_cast<std::uint64_t>(number);
}

std::vector<std::string> texts_from(nb::handle value, const char* function, const char* name) {
  constexpr const char* wanted = "a string or a sequence of strings";
  if (PyUnicode_Check(value.ptr())) return {text_from(value, function, name)};
  if (PySequence_Check(value.ptr()) == 0) refuse(value, function, name, wanted);
  const nb::object elements = nb::steal(PySequence_Tuple(value.ptr()));
  if (!elements.is_valid()) refuse_unless_other(value, function, name, wanted);
  std::vector<std::string> out;
  for (const nb::handle element : nb::cast<nb::tuple>(elements)) out.push_back(text_from(element, function, name));
  return out;
}

std::vector<std::int64_t> integers_from(nb::handle value, const char* function, const char* name) {
  constexpr const char* wanted = "an integer or a sequence of them";
  // Arrays are both, as far as one can tell before asking.
  const bool one = PyIndex_Check(value.ptr()) != 0;
  if (one && nb::steal(PyNumber_Index(value.ptr())).is_valid()) return {integer_from(value, function, name)};
  PyErr_Clear();
  if (PySequence_Check(value.ptr()) == 0 || PyUnicode_Check(value.ptr())) refuse(value, function, name, wanted);
  const nb::object elements = nb::steal(PySequence_Tuple(value.ptr()));
  if (!elements.is_valid()) refuse_unless_other(value, function, name, wanted);
  std::vector<std::int64_t> out;
  for (const nb::handle element : nb::cast<nb::tuple>(elements)) out.push_back(integer_from(element, function, name));
  return out;
}

int priority_from(nb::handle value, const char* function) {
  const std::int64_t priority = integer_from(value, function, "priority");
  if (priority < INT32_MIN || priority > INT32_MAX) {
    fail(ErrorCode::invalid_argument, function, "priority does not fit 32 bits; pass a smaller number");
  }
  return static_cast<int>(priority);
}

double real_from(nb::handle value, const char* function, const char* name) {
  const bool number = PyFloat_Check(value.ptr()) || PyIndex_Check(value.ptr()) || nb::hasattr(value, "__float__");
  if (!number || (!PyFloat_Check(value.ptr()) && is_boolean(value))) refuse(value, function, name, "a number");
  const double result = PyFloat_AsDouble(value.ptr());
  if (result != -1 || PyErr_Occurred() == nullptr) return result;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) refuse_unless_other(value, function, name, "a number");
  PyErr_Clear();
  fail(ErrorCode::invalid_argument, function, std::string(name) + " is too large for a float; pass a smaller number");
}

bool boolean_from(nb::handle value, const char* function, const char* name) {
  if (is_numpy_bool(value)) return PyObject_IsTrue(value.ptr()) == 1;
  if (!nb::isinstance<nb::bool_>(value)) refuse(value, function, name, "True or False");
  return value.ptr() == Py_True;
}

OpId op_from(nb::handle value, const char* function) { return parse_op(text_from(value, function, "op")); }

Problem problem_from(nb::handle value, const char* function) {
  if (nb::isinstance<Problem>(value)) return nb::cast<Problem>(value);
  if (!nb::isinstance<nb::str>(value)) {
    refuse(value, function, "problem", "a Problem, or a text such as \"matmul(f32[64,64], f32[64,64])\"");
  }
  return parse_problem(text_from(value, function, "problem"));
}

void check_callable(nb::handle value, const char* function, const char* name) {
  if (PyCallable_Check(value.ptr()) == 0) refuse(value, function, name, "a function");
}

nb::str to_python(std::string_view text) {
  PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

nb::tuple to_python(const Dims& dims) {
  nb::list list;
  for (const std::int64_t value : dims) list.append(value);
  return nb::tuple(list);
}

}  // namespace xpuruntime::python
