#pragma once

#include <cstdint>
#include <span>

#include "xpuruntime/core/problem.h"

// The inputs of attention after query, key and value, by their places.

namespace xpuruntime {

inline constexpr std::size_t attention_mask = 3;
inline constexpr std::size_t attention_lengths = 4;
inline constexpr std::size_t attention_page_table = 5;

/// Keys that a sequence has at most. With a page table they lie on pages [pages, page_size, heads, head_size].
inline std::int64_t attention_keys(std::span<const TensorSpec> inputs) {
  if (!has_input(inputs, attention_page_table)) return inputs[1].shape[2];
  return inputs[attention_page_table].shape[1] * inputs[1].shape[1];
}

}  // namespace xpuruntime
