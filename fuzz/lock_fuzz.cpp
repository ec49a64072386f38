#include "parsed.h"
#include "xpuruntime/select/lock.h"

/// Any bytes are refused with an Error, or read as a lock whose JSON reads back as an equal one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  round_trip<xpuruntime::KernelLock>(data, size);
  return 0;
}
