#pragma once

#include <array>
#include <span>
#include <string>

#include "python/bindings.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime::python {

class OpCall;

enum class ParameterKind : std::uint8_t {
  input,
  optional_input,
  input_or_number,
  inputs,  // a sequence of arrays
  boolean,
  integer,
  real,
  integers,  // one stands for all
  choice,
  dtype,
  special,  // read by one of the signature's own functions
};

/// One parameter of a Python function. The names are those of PyTorch's functional API.
struct Parameter {
  const char* name = nullptr;
  ParameterKind kind = ParameterKind::input;
  const char* fallback = nullptr;    // the default as Python prints it; null: the parameter is required
  const char* attribute = nullptr;   // of the op, where it has another name than the parameter
  const char* annotation = nullptr;  // where the kind does not say it
  bool keyword_only = false;
};

inline constexpr std::size_t max_parameters = 12;
/// The parameters' names as Python interns them, so that most keywords are found by their address.
using InternedNames = std::array<PyObject*, max_parameters>;

/// How Python calls an op: made from its row. `dtype` and `out` come after the parameters of every one.
struct Signature {
  OpId op = OpId::matmul;
  const char* name = nullptr;
  std::span<const Parameter> parameters = {};
  /// Before the arrays are read: may replace arguments.
  void (*before)(OpCall&) = nullptr;
  /// After it: sets the attributes that follow from special parameters and shapes.
  void (*after)(OpCall&) = nullptr;
  const InternedNames* names = nullptr;
  std::size_t outputs = 1;  // OpInfo::outputs
};

/// Gives the signature of a built-in op the functions that read its parameters that are not attributes.
void add_hooks(Signature& signature);

/// Every function of `xpuruntime.ops`: each op under its own name, and under PyTorch's where that differs.
std::span<const Signature> signatures();

ParameterKind parameter_kind(AttributeKind kind);
/// As Python has it: one number for a list of equal ones, () for a list of any length.
nb::object default_of(const AttributeSpec& spec);

/// By the function's name or any name of the op; an unknown one is an error that lists the near ones.
const Signature& find_signature(std::string_view name);

/// "input, other, *, alpha=1, dtype=None, out=None"
std::string parameter_text(const Signature& signature, bool typed);

}  // namespace xpuruntime::python
