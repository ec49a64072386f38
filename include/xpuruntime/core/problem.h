#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/op.h"

namespace xpuruntime {

/// Bounds that the caller's policy sets. A choice made under one set of limits is never used under another.
struct Limits {
  std::optional<std::uint64_t> workspace_bytes = {};  // most temporary memory a kernel may ask for
  bool deterministic = false;                         // only kernels that give the same bits every time
  std::optional<std::uint32_t> threads = {};          // most threads a CPU kernel may use; 1 or more

  bool operator==(const Limits&) const = default;
};

/// Obeys both: the smaller of two figures, and deterministic where either asks for it.
Limits stricter(const Limits& a, const Limits& b);

/// Everything a choice may depend on, and nothing else.
struct Problem {
  OpId op = OpId::matmul;
  Direction direction = Direction::forward;
  Device device = {};
  std::vector<TensorSpec> inputs = {};
  std::vector<TensorSpec> outputs = {};
  Attributes attributes = {};
  Limits limits = {};

  bool operator==(const Problem&) const = default;
};

/// Stands for an optional input that is left out before one that is given, where the op has inputs that kernels opt in
/// to. Texts write `none`; it is a bool[0], which no such input can be.
const TensorSpec& no_input();
/// Whether the inputs of a forward call have one at place `i`.
bool has_input(std::span<const TensorSpec> inputs, std::size_t i);

/// The opt-in inputs and attributes (see InputSpec, AttributeSpec) that the problem uses, by their names.
std::vector<std::string_view> opt_ins_of(const Problem& problem);

/// Checks the inputs and infers the outputs. Backward problems take the forward inputs and then the gradient of the
/// output; their outputs are the gradients of the differentiable inputs (see OpInfo), in order.
Problem make_problem(OpId op, std::vector<TensorSpec> inputs, const Attributes& attributes, Device device = {},
                     Direction direction = Direction::forward);

/// Sets given outputs, which may be strided or of another dtype than inferred; wrong shapes are an error.
void set_outputs(Problem& problem, std::vector<TensorSpec> outputs);

/// A problem that was filled in by hand, checked and put in canonical form, or an error that says what is wrong.
Problem checked(const Problem& problem);

/// `matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0`. docs/interfaces.md has the grammar.
std::string to_string(const Problem& problem);
std::string to_string(const TensorSpec& spec);

/// Reads the text form; `device` stands in where the text names none. Errors name the column.
Problem parse_problem(std::string_view text, Device device = {});

/// Mixes every word of the problem. Equal problems have equal hashes; unequal ones are told apart by ==.
std::uint64_t hash_of(const Problem& problem);

/// The dtype that a kernel computes this problem in: float inputs promoted without loss, integers only among
/// themselves.
DataType promoted_dtype(const Problem& problem);

}  // namespace xpuruntime

template <>
struct std::hash<xpuruntime::Problem> {
  std::size_t operator()(const xpuruntime::Problem& problem) const noexcept { return xpuruntime::hash_of(problem); }
};
