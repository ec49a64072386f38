#pragma once

#include <memory>

#include "backends/cpu/base/supports.h"

// The functions behind the CPU table's rows of this family.

namespace xpuruntime::cpu {

Verdict supports_reduce_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_reduce_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_reduce_simd(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_reduce_reference(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cpu
