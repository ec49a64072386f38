#pragma once

#include "backends/cpu/onednn/library.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {

/// Only for f32, bf16, i32, i8 and u8.
dnnl::memory::data_type onednn_type(DataType dtype);

/// No empty tensors; bf16 only where it is fast.
Verdict supports_onednn(const Problem& problem, const DeviceProfile& profile);

/// Products that oneDNN 2.6 answers with an illegal instruction where there is AMX, for many a number of rows (65 to
/// 80, 129 to 144 and on) and few columns: those of as many terms as two tiles hold, less the last 1 (bf16) or 1 to 3
/// (8 bit).
bool breaks_onednn(DataType dtype, std::int64_t summed);

}  // namespace xpuruntime::cpu
