#include "cli/table.h"

#include <algorithm>

namespace xpuruntime::cli {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string Table::to_text(const Painter& paint) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? row[i] : padded(row[i], widths[i] + 2);
    }
    text += (&row == &rows_.front() ? paint(Colour::bold, line) : line) + "\n";
  }
  return text;
}

}  // namespace xpuruntime::cli
