#pragma once

#include <string>
#include <string_view>

namespace xpuruntime::cli {

enum class Colour { bold, dim, green, red };

/// Colours text, or leaves it alone where nobody would see colours.
class Painter {
 public:
  explicit Painter(bool on) : on_(on) {}
  /// On for a terminal, unless NO_COLOR is set or the terminal is dumb.
  static Painter for_stdout();

  std::string operator()(Colour colour, std::string_view text) const;
  /// A decision as Decision::to_text gives it: what runs is green, what was refused is red.
  std::string decision(const std::string& text) const;
  /// A whole answer with nothing in it that a terminal would obey, but for our own colours.
  std::string harmless(std::string_view text) const;

 private:
  bool on_;
};

}  // namespace xpuruntime::cli
