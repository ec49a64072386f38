#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime {

/// "1 input", "2 inputs".
inline std::string counted(std::size_t count, std::string_view what) {
  return std::to_string(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

/// Of ASCII letters, whatever the locale.
constexpr char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
std::string lowered(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// Whether `given` is a way to write `name`: in any case, with all its underscores or with none (`MaxPool2d` for
/// max_pool2d). Anything else would be a guess.
bool is_spelling_of(std::string_view given, std::string_view name);

/// Compares but for case and underscores: below 0, 0 or above it as `a` is before, like or after `b`.
int compare_letters(std::string_view a, std::string_view b);

/// Too alike to be the names of two things.
inline bool same_letters(std::string_view a, std::string_view b) { return compare_letters(a, b) == 0; }

/// As policies have it: "fp32", "fp16", "bf16", "int8".
std::string_view precision_name(DataType dtype);

/// As NumPy and PyTorch have it: "float32", "bfloat16", "int8".
std::string_view full_name(DataType dtype);

/// All that find_data_type reads, the short name of each dtype first.
std::vector<std::string_view> data_type_spellings();

}  // namespace xpuruntime
