#pragma once

#include <chrono>
#include <cstdint>

namespace xpuruntime {

/// Of a clock that only goes forward: for differences.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline std::int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace xpuruntime
