#include "backends/opencl/build_log.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
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

struct Place {
  std::size_t line = 0;
  std::string file = {};  // as the driver calls it
};

/// "program.cl:12:5: error", "<kernel>:12:5:", "1:12:5:", "error: /tmp/x.cl:12:5:", "\"/tmp/x.cl\", line 12: error",
/// "(12) : error", ":12: error".
std::optional<Place> place_in(std::string_view line) {
  line = line.substr(0, line.find(" <Spelling="));  // where a macro says what the line uses
  const auto file_before = [&](std::size_t end) {
    std::string_view file = line.substr(0, end);
    if (const std::size_t blank = file.rfind(": "); blank != std::string_view::npos) file.remove_prefix(blank + 2);
    if (const std::size_t quote = file.find('"'); quote != std::string_view::npos)
      file = file.substr(quote + 1, file.find('"', quote + 1) - quote - 1);
    return std::string(file);
  };
  if (const std::size_t at = line.find("line "); at != std::string_view::npos)
    if (const auto number = number_at(line, at + 5)) return Place{*number, file_before(at)};
  // Line and column, up to the blank that ends them: a driver may put a number of its own before.
  std::optional<Place> found;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (at != 0 && line[at - 1] != ':') continue;
    const auto number = number_at(line, at);
    if (!number) continue;
    const std::size_t after = std::min(line.find_first_not_of("0123456789", at), line.size());
    if (after == line.size() || line[after] != ':') continue;
    const bool has_column = after + 1 < line.size() && is_digit(line[after + 1]);
    if (has_column || !found) found = Place{*number, file_before(at == 0 ? 0 : at - 1)};
    if (!has_column) break;
  }
  if (found) return found;
  const std::size_t at = line.find('(');
  const auto number = at == std::string_view::npos ? std::nullopt : number_at(line, at + 1);
  return number ? std::optional(Place{*number, file_before(at)}) : std::nullopt;
}

/// "<command line>": of the options.
bool is_no_file(const std::string& file) {
  return file == "<command line>" || file == "<built-in>" || file == "<scratch space>";
}

/// That line of a file; nothing where it cannot be read.
std::optional<std::string> line_of_file(const Place& place) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(place.file, ignored)) return {};
  std::ifstream file(place.file);
  std::string line;
  for (std::size_t i = 0; i < place.line; ++i)
    if (!std::getline(file, line)) return {};
  return line;
}

bool has_directive(std::string_view source, std::string_view name) {
  for (std::size_t at = source.find('#'); at != std::string_view::npos; at = source.find('#', at + 1)) {
    const std::size_t word = source.find_first_not_of(" \t", at + 1);
    if (word != std::string_view::npos && source.substr(word).starts_with(name)) return true;
  }
  return false;
}

bool is_error(std::string_view line) { return line.find("rror") != std::string_view::npos; }

}  // namespace

bool has_include(std::string_view source) { return has_directive(source, "include"); }

std::string explain_log(std::string_view log, std::string_view source, std::size_t skipped) {
  const std::vector<std::string_view> said = lines_of(log);
  const std::vector<std::string_view> code = lines_of(source);
  const bool includes = has_include(source);
  const bool renumbered = has_directive(source, "line");  // then lines and files are what the source calls them
  const auto quoted = [&](std::string_view line) -> std::string {
    const auto place = place_in(line);
    if (renumbered || !place || place->line == 0 || is_no_file(place->file)) return {};
    const std::size_t number = place->line;
    const auto quote = [](std::size_t at, std::string_view where, std::string_view text) {
      return "\n  line " + std::to_string(at) + std::string(where) + ": " + std::string(text);
    };
    const bool inside = number <= code.size();
    // Drivers may put the source itself into a file.
    const auto other = includes ? line_of_file(*place) : std::nullopt;
    if (other && !(inside && *other == code[number - 1])) return quote(number, " of " + place->file, *other);
    if (!inside) return {};
    return number > skipped ? quote(number - skipped, "", code[number - 1])
                            : quote(number, " of common.cl", code[number - 1]);
  };
  // Warnings stand before errors, and the last lines only count them.
  const auto first = std::find_if(said.begin(), said.end(), [&](auto line) {
    return is_error(line) && (renumbered ? place_in(line).has_value() : !quoted(line).empty());
  });
  std::string text;
  const std::size_t from = first == said.end() ? 0 : static_cast<std::size_t>(first - said.begin());
  for (std::size_t i = from; i < said.size() && i < from + shown_lines; ++i) {
    text += (text.empty() ? "" : "\n") + std::string(said[i]);
    if (i == from && first != said.end()) text += quoted(*first);
  }
  return text;
}

}  // namespace xpuruntime::opencl
