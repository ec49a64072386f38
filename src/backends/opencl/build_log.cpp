#include "backends/opencl/build_log.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t shown_lines = 8;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The number that starts at `at`, at most 7 digits.
std::optional<std::size_t> number_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == at || end - at > 7) return {};
  std::size_t value = 0;
  for (; at < end; ++at) value = value * 10 + static_cast<std::size_t>(text[at] - '0');
  return value;
}

/// "program.cl:12:5: error", "<kernel>:12:5:", "1:12:5:", "error: /tmp/x.cl:12:5:", "\"/tmp/x.cl\", line 12: error",
/// "(12) : error", ":12: error".
std::optional<std::size_t> line_number(std::string_view line) {
  if (const std::size_t at = line.find("line "); at != std::string_view::npos)
    if (const auto number = number_at(line, at + 5)) return number;
  // Line and column, up to the blank that ends them: a driver may put a number of its own before.
  std::optional<std::size_t> found;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (at != 0 && line[at - 1] != ':') continue;
    const auto number = number_at(line, at);
    if (!number) continue;
    const std::size_t after = std::min(line.find_first_not_of("0123456789", at), line.size());
    if (after == line.size() || line[after] != ':') continue;
    const bool has_column = after + 1 < line.size() && is_digit(line[after + 1]);
    if (has_column || !found) found = number;
    if (!has_column) break;
  }
  if (found) return found;
  const std::size_t at = line.find('(');
  return at == std::string_view::npos ? std::nullopt : number_at(line, at + 1);
}

bool is_error(std::string_view line) { return line.find("rror") != std::string_view::npos; }

}  // namespace

std::string explain_log(std::string_view log, std::string_view source, std::size_t skipped) {
  const std::vector<std::string_view> said = lines_of(log);
  const std::vector<std::string_view> code = lines_of(source);
  const auto named = [&](std::string_view line) {
    const auto number = line_number(line);
    return number && *number >= 1 && *number <= code.size();
  };
  // Warnings stand before errors, and the last lines only count them.
  auto first = std::find_if(said.begin(), said.end(), [&](auto line) { return is_error(line) && named(line); });
  std::string text;
  const std::size_t from = first == said.end() ? 0 : static_cast<std::size_t>(first - said.begin());
  for (std::size_t i = from; i < said.size() && i < from + shown_lines; ++i) {
    text += (text.empty() ? "" : "\n") + std::string(said[i]);
    if (i != from || first == said.end()) continue;
    const std::size_t number = *line_number(*first);
    text += "\n  line " + std::to_string(number > skipped ? number - skipped : number) +
            (number > skipped ? "" : " of common.cl") + ": " + std::string(code[number - 1]);
  }
  return text;
}

}  // namespace xpuruntime::opencl
