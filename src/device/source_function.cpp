#include "xpuruntime/device/source_function.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace xpuruntime {

bool has_countable_groups(const WorkSize& global, const WorkSize& local) {
  std::size_t room = std::size_t{1} << 31;
  for (std::size_t d = 0; d < 3; ++d)
    if (global[d] != 0) room /= (global[d] - 1) / std::max<std::size_t>(local[d], 1) + 1;
  return room != 0;
}

std::string to_string(const WorkSize& size) {
  std::string text = std::to_string(size[0]);
  if (size[1] > 1 || size[2] > 1) text += "x" + std::to_string(size[1]);
  return size[2] > 1 ? text + "x" + std::to_string(size[2]) : text;
}

WorkSize parse_work_size(std::string_view text) {
  WorkSize size = {1, 1, 1};
  for (std::size_t dim = 0; dim < size.size(); ++dim) {
    const auto [end, flaw] = std::from_chars(text.data(), text.data() + text.size(), size[dim]);
    if (flaw != std::errc() || size[dim] == 0) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return size;
    if (text[0] != 'x') return {};
    text.remove_prefix(1);
  }
  return {};
}

}  // namespace xpuruntime
