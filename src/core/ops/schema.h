#pragma once

#include <bit>
#include <span>

#include "core/forward_call.h"
#include "core/op_table.h"
#include "core/result_layouts.h"
#include "xpuruntime/core/problem.h"

// How the rows of ops are written down. A family of ops is a file beside this one: its rows, and the rules for shapes
// that stand in them.

namespace xpuruntime::op_rows {

// The families.
std::span<const OpInfo> matrix();
std::span<const OpInfo> window();
std::span<const OpInfo> norm();
std::span<const OpInfo> reduce();
std::span<const OpInfo> loss();
std::span<const OpInfo> elementwise();
std::span<const OpInfo> pointwise();
std::span<const OpInfo> logic();
std::span<const OpInfo> movement();
std::span<const OpInfo> indexing();
std::span<const OpInfo> arranging();
std::span<const OpInfo> decoder();
std::span<const OpInfo> quantization();

using Id = OpId;
using Kind = OpCategory;
using Specs = std::vector<TensorSpec>;
using Inputs = std::span<const TensorSpec>;
using Sizes = std::vector<std::int64_t>;
constexpr auto lower = AutocastSide::lower;
constexpr auto higher = AutocastSide::higher;

constexpr AttributeSpec boolean(std::string_view name, bool value = false) {
  return {.name = name, .kind = AttributeKind::boolean, .default_value = value};
}
constexpr AttributeSpec integer(std::string_view name, std::int64_t value, std::string_view note = {}) {
  return {.name = name, .kind = AttributeKind::integer, .default_value = value, .note = note};
}
constexpr AttributeSpec real(std::string_view name, double value, std::string_view note = {}) {
  return {.name = name, .kind = AttributeKind::real, .default_value = std::bit_cast<std::int64_t>(value), .note = note};
}
constexpr AttributeSpec fixed_list(std::string_view name, std::uint8_t length, std::int64_t value,
                                   std::string_view note = {}) {
  return {.name = name, .kind = AttributeKind::integers, .length = length, .default_value = value, .note = note};
}
constexpr AttributeSpec free_list(std::string_view name, std::string_view note) {
  return {.name = name, .kind = AttributeKind::integers, .length = 0, .note = note};
}
constexpr AttributeSpec choice(std::string_view name, std::string_view choices) {
  return {.name = name, .kind = AttributeKind::choice, .choices = choices};
}
constexpr AttributeSpec dtype(std::string_view name, DataType value) {
  return {.name = name, .kind = AttributeKind::dtype, .default_value = static_cast<std::int64_t>(value)};
}

constexpr AttributeSpec opt_in(AttributeSpec spec) {
  spec.opt_in = true;
  return spec;
}

/// A size that is one extent of an input.
template <std::size_t input, std::size_t dim>
Sizes extent(const Problem& forward) {
  return {forward.inputs[input].shape[dim]};
}

constexpr bool varies = true;
constexpr SizeSpec size(std::string_view name, Sizes (*read)(const Problem&), std::string_view summary,
                        bool free = false) {
  return {.name = name, .read = read, .summary = summary, .free = free};
}
constexpr SizeSpec sizes(std::string_view name, std::uint8_t length, Sizes (*read)(const Problem&),
                         std::string_view summary, bool free = false) {
  return {
      .name = name, .kind = AttributeKind::integers, .length = length, .read = read, .summary = summary, .free = free};
}

}  // namespace xpuruntime::op_rows
