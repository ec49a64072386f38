#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace xpuruntime::cpu {

/// As extremes.h has them for vectors: NaN wins over every number, and -0 is below +0.
inline double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline double minimum(double a, double b) { return -maximum(-a, -b); }

inline std::int64_t maximum(std::int64_t a, std::int64_t b) { return std::max(a, b); }
inline std::int64_t minimum(std::int64_t a, std::int64_t b) { return std::min(a, b); }

}  // namespace xpuruntime::cpu
