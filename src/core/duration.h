#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace xpuruntime {

/// Seconds in "500ms", "30s", "1.5m" or "2h": a number above 0 and its unit. Anything else is an error.
double parse_duration(std::string_view text);

/// What is wrong with such a text, for the parser of the command line; empty if nothing.
std::string flaw_of_duration(const std::string& text);

/// "250 ms", "1.5 s", "2 min 5 s"
std::string duration_text(double seconds);

inline std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace xpuruntime
