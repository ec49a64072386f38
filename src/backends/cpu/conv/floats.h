#pragma once

#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::cpu {

/// Widens f32, f16 or bf16 to f32; writes exactly `count` floats.
void widen_floats(DataType dtype, const void* from, std::int64_t count, float* to);

}  // namespace xpuruntime::cpu
