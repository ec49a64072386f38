#include "cli/colour.h"

#include <unistd.h>

#include <sstream>

#include "core/environment_variable.h"

namespace xpuruntime::cli {
namespace {

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
  constexpr std::string_view codes[] = {"\033[1m", "\033[2m", "\033[32m", "\033[31m"};
  return std::string(codes[static_cast<std::size_t>(colour)]) + std::string(text) + "\033[0m";
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

}  // namespace xpuruntime::cli
