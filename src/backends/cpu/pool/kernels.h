#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family. Each serves max and average, two and three dims alike.

namespace xpuruntime::cpu {

std::unique_ptr<const Plan> prepare_pool_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_pool_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_pool_simd(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_pool_simd(const Problem& problem, const DeviceProfile& profile);

}  // namespace xpuruntime::cpu
