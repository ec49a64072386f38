#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// What a decoder's layer does between its products.

namespace xpuruntime::cpu {

std::unique_ptr<const Plan> prepare_silu_mul_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_silu_mul_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_rope_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_rope_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_rope_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_kv_append_rows(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_kv_append_rows(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_kv_append_reference(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cpu
