#include "select/op_name.h"

#include <algorithm>

#include "core/names.h"

namespace xpuruntime {
namespace {

constexpr std::string_view dtype_letters[] = {"f", "fp", "float", "bf", "bfloat", "tf", "i", "int", "u", "uint"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return lowered(c) >= 'a' && lowered(c) <= 'z'; }

std::string_view suffix_of(std::string_view name) {
  const std::size_t underscore = name.rfind('_');
  return underscore == std::string_view::npos || underscore == 0 ? std::string_view() : name.substr(underscore + 1);
}

bool looks_like_dtype(std::string_view text) {
  if (find_data_type(text)) return std::any_of(text.begin(), text.end(), is_digit);
  const auto digits = std::find_if(text.begin(), text.end(), is_digit);
  const auto letters = text.substr(0, static_cast<std::size_t>(digits - text.begin()));
  const auto same = [&](std::string_view known) { return equal_ignoring_case(letters, known); };
  return digits != text.end() && std::all_of(digits, text.end(), is_digit) &&
         std::any_of(std::begin(dtype_letters), std::end(dtype_letters), same);
}

}  // namespace

OpName split_name(std::string_view name) {
  const std::string_view suffix = suffix_of(name);
  if (!looks_like_dtype(suffix)) return {name, {}};
  const std::optional<KernelDtype> dtype = find_kernel_dtype(suffix);
  return dtype ? OpName{name.substr(0, name.size() - suffix.size() - 1), dtype} : OpName{name, {}};
}

std::string_view wrong_dtype_suffix(std::string_view name) {
  const std::string_view suffix = suffix_of(name);
  return looks_like_dtype(suffix) && !find_kernel_dtype(suffix) ? suffix : std::string_view();
}

bool is_op_name(std::string_view name) {
  const auto allowed = [](char c) { return c == '_' || is_digit(c) || is_letter(c); };
  return !name.empty() && name.size() <= 64 && is_letter(name[0]) && std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace xpuruntime
