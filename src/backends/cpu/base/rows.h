#pragma once

#include <string_view>

#include "xpuruntime/registry/kernel.h"

// What several rows of the CPU's table say.

namespace xpuruntime::cpu::summary {

inline constexpr std::string_view exact = "any dtype and layout, computed in float64";
inline constexpr std::string_view moved = "any pair of dtypes and layouts";
inline constexpr std::string_view vectors = "vectors of f32, any layout";

}  // namespace xpuruntime::cpu::summary
