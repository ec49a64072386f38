#include "core/names.h"

#include <algorithm>

namespace xpuruntime {

bool is_spelling_of(std::string_view given, std::string_view name) {
  const auto same = [](char a, char b) { return lowered(a) == lowered(b); };
  if (std::equal(given.begin(), given.end(), name.begin(), name.end(), same)) return true;
  return given.find('_') == given.npos && same_letters(given, name);
}

bool same_letters(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (true) {
    while (i < a.size() && a[i] == '_') ++i;
    while (j < b.size() && b[j] == '_') ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (lowered(a[i++]) != lowered(b[j++])) return false;
  }
}

}  // namespace xpuruntime
