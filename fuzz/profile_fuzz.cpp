#include "parsed.h"
#include "xpuruntime/device/profile.h"

/// Any bytes are refused with an Error, or read as a profile whose JSON reads back as an equal one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  round_trip<xpuruntime::DeviceProfile>(data, size);
  return 0;
}
