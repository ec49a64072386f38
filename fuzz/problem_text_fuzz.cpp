#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"

namespace {

std::optional<xpuruntime::Problem> parsed(std::string_view text) {
  try {
    return xpuruntime::parse_problem(text);
  } catch (const xpuruntime::Error&) {
    return {};
  }
}

}  // namespace

/// Any text is refused with an Error, or read as a problem whose text reads back as an equal one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto problem = parsed({reinterpret_cast<const char*>(data), size});
  if (!problem) return 0;
  const std::string text = to_string(*problem);
  const xpuruntime::Problem again = xpuruntime::parse_problem(text);
  if (again != *problem || to_string(again) != text || hash_of(again) != hash_of(*problem)) std::abort();
  return 0;
}
