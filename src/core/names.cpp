#include "core/names.h"

#include <algorithm>

namespace xpuruntime {

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lowered(c);
  return out;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return lowered(x) == lowered(y); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool is_spelling_of(std::string_view given, std::string_view name) {
  if (equal_ignoring_case(given, name)) return true;
  return given.find('_') == given.npos && same_letters(given, name);
}

int compare_letters(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (true) {
    while (i < a.size() && a[i] == '_') ++i;
    while (j < b.size() && b[j] == '_') ++j;
    if (i == a.size() || j == b.size()) return (i < a.size()) - (j < b.size());
    const char x = lowered(a[i++]), y = lowered(b[j++]);
    if (x != y) return x < y ? -1 : 1;
  }
}

}  // namespace xpuruntime
