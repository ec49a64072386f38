#include "core/duration.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr int longest_h = 30 * 24;

constexpr std::pair<std::string_view, double> units[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};

/// Negative where the text is not a duration.
double seconds_in(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{}) return -1;
  for (const auto& [unit, seconds] : units) {
    if (std::string_view(stop, static_cast<std::size_t>(end - stop)) == unit) return number * seconds;
  }
  return -1;
}

}  // namespace

std::string flaw_of_duration(const std::string& text) {
  const double seconds = seconds_in(text);
  const bool is_one = std::isfinite(seconds) && seconds > 0;
  if (is_one && seconds <= 3600.0 * longest_h) return {};
  if (is_one) return "'" + text + "' is too long; write at most " + std::to_string(longest_h) + "h";
  return "'" + text + "' is not a duration; write a number above 0 and ms, s, m or h, such as 500ms or 30s";
}

double parse_duration(std::string_view text) {
  const std::string flaw = flaw_of_duration(std::string(text));
  if (!flaw.empty()) fail(ErrorCode::invalid_argument, "parse_duration", flaw);
  return seconds_in(text);
}

std::string duration_text(double seconds) {
  char text[48];
  if (seconds < 1) {
    std::snprintf(text, sizeof text, "%.0f ms", seconds * 1000);
  } else if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else {
    const double minutes = std::floor(seconds / 60);
    std::snprintf(text, sizeof text, "%.0f min %.0f s", minutes, seconds - 60 * minutes);
  }
  return text;
}

}  // namespace xpuruntime
