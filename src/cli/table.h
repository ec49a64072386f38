#pragma once

#include <string>
#include <vector>

#include "cli/colour.h"

namespace xpuruntime::cli {

/// `text` with blanks up to `width`.
std::string padded(std::string text, std::size_t width);

/// A number by printf's format for one double, which may have words around it.
std::string figure(const char* format, double value);

/// Rows under a heading, in columns as wide as their widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}

  /// As many cells as the heading has. What they say may come from anywhere.
  void add(std::vector<std::string> row);
  std::string to_text(const Painter& paint) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace xpuruntime::cli
