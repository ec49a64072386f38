#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"
#include "xpuruntime/device/profile.h"

namespace {

std::optional<xpuruntime::DeviceProfile> parsed(std::string_view json) {
  try {
    return xpuruntime::DeviceProfile::from_json(json);
  } catch (const xpuruntime::Error&) {
    return {};
  }
}

}  // namespace

/// Any bytes are refused with an Error, or read as a profile whose JSON reads back as an equal one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto profile = parsed({reinterpret_cast<const char*>(data), size});
  if (!profile) return 0;
  const std::string json = profile->to_json();
  const xpuruntime::DeviceProfile again = xpuruntime::DeviceProfile::from_json(json);
  if (again != *profile || again.to_json() != json) std::abort();
  return 0;
}
