#pragma once

#include "backends/cpu/base/storage.h"
#include "xpuruntime/registry/kernel.h"

// Verdicts that many kernels share. The first that says no gives the reason. Directions are none of their business: the
// row declares them.

namespace xpuruntime::cpu {

/// Takes every problem that passed the op's own checks and whose tensors are aligned to their elements.
Verdict supports_aligned(const Problem& problem, const DeviceProfile& profile);

/// Aligned, and every tensor f32, f16 or bf16 (they may differ).
Verdict supports_fast_floats(const Problem& problem);

/// supports_fast_floats, and every tensor contiguous.
Verdict supports_dense_floats(const Problem& problem);

/// "input 1 is i32, and this kernel takes f32, f16 and bf16"
Verdict refuse_dtype(std::string_view which, DataType dtype, std::string_view takes);

}  // namespace xpuruntime::cpu
