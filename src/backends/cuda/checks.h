#pragma once

#include <initializer_list>

#include "xpuruntime/registry/kernel.h"

// The small vocabulary that this backend's kernels refuse in.

namespace xpuruntime::cuda {

using Check = Verdict (*)(const Problem&, const DeviceProfile&);

/// Asks in order; the first refusal stands.
Verdict first_refusal(std::initializer_list<Check> checks, const Problem& problem, const DeviceProfile& profile);

/// This build has code for compute capability 8.0 and newer.
Verdict has_code(const Problem& problem, const DeviceProfile& profile);
/// Every tensor starts where one of its elements may: the device faults on others.
Verdict is_aligned(const Problem& problem, const DeviceProfile& profile);
/// All inputs are of floating types.
Verdict floats_only(const Problem& problem, const DeviceProfile& profile);

Verdict refuse_dtype(DataType dtype);
/// "m = 17 is over 16"
Verdict refuse_over(const char* what, std::int64_t value, std::int64_t limit);

}  // namespace xpuruntime::cuda
