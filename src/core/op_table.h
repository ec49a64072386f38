#pragma once

#include <algorithm>
#include <span>

#include "xpuruntime/core/op.h"

namespace xpuruntime {

constexpr std::size_t max_inputs = 64;

/// The ops of OpId, in its order.
std::span<const OpInfo> builtin_ops();

/// The op that has this name but for case and underscores. For those who give new names: find_op does not guess.
std::optional<OpId> find_op_like(std::string_view name);

/// The row with the numbers of inputs that follow from its inputs.
constexpr OpInfo with_input_counts(OpInfo info) {
  if (info.inputs.empty()) return info;
  std::size_t required = 0;
  for (const InputSpec& input : info.inputs) required += input.optional ? 0 : 1;
  info.min_inputs = static_cast<std::uint8_t>(required);
  info.max_inputs = static_cast<std::uint8_t>(info.inputs.back().repeated ? max_inputs : info.inputs.size());
  return info;
}

/// Words that an attribute takes in Attributes. A list of free length stores its length first.
constexpr std::size_t word_count(const AttributeSpec& spec) {
  if (spec.kind != AttributeKind::integers) return 1;
  return spec.length == 0 ? 1 + max_rank : spec.length;
}

constexpr std::size_t word_count(std::span<const AttributeSpec> specs) {
  std::size_t count = 0;
  for (const AttributeSpec& spec : specs) count += word_count(spec);
  return count;
}

constexpr bool holds_default(const AttributeSpec& spec, std::span<const std::int64_t> words) {
  if (spec.kind == AttributeKind::integers && spec.length == 0) return words[0] == 0;
  return std::all_of(words.begin(), words.end(), [&](std::int64_t word) { return word == spec.default_value; });
}

/// Calls `use` with each part of "a|b|c" until it returns false.
template <class Use>
constexpr void for_each_part(std::string_view parts, Use use) {
  while (!parts.empty()) {
    const std::size_t bar = parts.find('|');
    if (!use(parts.substr(0, bar))) return;
    parts = bar == std::string_view::npos ? std::string_view{} : parts.substr(bar + 1);
  }
}

}  // namespace xpuruntime
