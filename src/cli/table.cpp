#include "cli/table.h"

#include <algorithm>
#include <cstdio>

#include "core/printable.h"

namespace xpuruntime::cli {
namespace {
constexpr std::size_t widest = 200;  // one endless cell must not make every row as long
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string figure(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::string Table::to_text(const Painter& paint) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], std::min(row[i].size(), widest));
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
