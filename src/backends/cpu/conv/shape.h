#pragma once

#include "backends/cpu/base/windows.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {

/// Whether it takes more than some tens of microseconds, so that several threads pay.
bool conv_is_large(const ConvShape& shape);
/// The threads that pay for this much work.
int conv_threads(const Problem& problem, const ConvShape& shape);

/// Refuses windows whose numbers could overflow the arithmetic of offsets; only the reference takes such.
Verdict supports_modest_windows(const Problem& problem);

/// Refuses matrices of columns that are empty or whose sides are past 31 bits.
Verdict supports_conv_columns(const ConvShape& shape);

/// What the fast kernels ask in common: contiguous f32, f16 or bf16, and modest windows.
Verdict supports_fast_conv(const Problem& problem);

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

}  // namespace xpuruntime::cpu
