#pragma once

#include <chrono>
#include <cstdint>

namespace xpuruntime {

inline std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace xpuruntime
