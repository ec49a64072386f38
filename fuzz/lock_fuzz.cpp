#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"
#include "xpuruntime/select/lock.h"

namespace {

std::optional<xpuruntime::KernelLock> parsed(std::string_view json) {
  try {
    return xpuruntime::KernelLock::from_json(json);
  } catch (const xpuruntime::Error&) {
    return {};
  }
}

}  // namespace

/// Any bytes are refused with an Error, or read as a lock whose JSON reads back as an equal one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lock = parsed({reinterpret_cast<const char*>(data), size});
  if (!lock) return 0;
  const std::string json = lock->to_json();
  const xpuruntime::KernelLock again = xpuruntime::KernelLock::from_json(json);
  if (again != *lock || again.to_json() != json) std::abort();
  return 0;
}
