#include "parsed.h"
#include "xpuruntime/core/problem_range.h"

/// Any text is refused with an Error, or read as a problem whose text reads back as an equal one;
/// so for texts with ranges.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  const auto problem = parsed(given, [](std::string_view text) { return xpuruntime::parse_problem(text); });
  const auto range = parsed(given, [](std::string_view text) { return xpuruntime::parse_problem_range(text); });
  if (range) {
    const std::string printed = to_string(*range);
    if (problem || to_string(xpuruntime::parse_problem_range(printed)) != printed) std::abort();
    if (!range->contains(range->least())) std::abort();
  }
  if (!problem) return 0;
  const std::string text = to_string(*problem);
  const xpuruntime::Problem again = xpuruntime::parse_problem(text);
  if (again != *problem || to_string(again) != text || hash_of(again) != hash_of(*problem)) std::abort();
  return 0;
}
