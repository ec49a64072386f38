#include "cli/colour.h"

#include <unistd.h>

#include <sstream>

#include "core/environment_variable.h"
#include "core/printable.h"

namespace xpuruntime::cli {
namespace {

constexpr std::string_view codes[] = {"\033[1m", "\033[2m", "\033[32m", "\033[31m"};
constexpr std::string_view reset = "\033[0m";

/// How long the colour code at the front is; 0 where none of ours is there.
std::size_t code_length(std::string_view text) {
  if (text.starts_with(reset)) return reset.size();
  for (const std::string_view code : codes) {
    if (text.starts_with(code)) return code.size();
  }
  return 0;
}

std::string_view value_of(const char* variable) {
  const char* value = environment_variable(variable);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

Painter Painter::for_stdout() {
  return Painter(isatty(STDOUT_FILENO) == 1 && value_of("NO_COLOR").empty() && value_of("TERM") != "dumb");
}

std::string Painter::operator()(Colour colour, std::string_view text) const {
  if (!on_) return std::string(text);
  return std::string(codes[static_cast<std::size_t>(colour)]) + printable_lines(text) + std::string(reset);
}

std::string Painter::decision(const std::string& text) const {
  if (!on_) return text;
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    const auto starts = [&](std::string_view with) { return line.starts_with(with); };
    if (out.empty()) {
      line = (*this)(Colour::bold, line);
    } else if (starts("  -> ") || starts("  chosen ")) {
      line = (*this)(Colour::green, line);
    } else if (starts("  nothing ") || starts("  refused ")) {
      line = (*this)(Colour::red, line);
    }
    out += line + "\n";
  }
  return out;
}

std::string Painter::harmless(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    std::size_t end = on_ ? text.find('\033') : text.npos;
    while (end != text.npos && code_length(text.substr(end)) == 0) end = text.find('\033', end + 1);
    out += printable_lines(text.substr(0, end));
    if (end == text.npos) break;
    const std::size_t length = code_length(text.substr(end));
    out += text.substr(end, length);
    text.remove_prefix(end + length);
  }
  return out;
}

}  // namespace xpuruntime::cli
