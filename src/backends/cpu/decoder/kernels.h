#pragma once

#include "backends/cpu/base/rows.h"

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

inline constexpr KernelSpec decoder_rows[] = {
    {OpId::silu_mul, "simd", summary::vectors, fast_floats, prepare_silu_mul_simd},
    {OpId::silu_mul, "reference", summary::exact, any_dtype, prepare_silu_mul_reference},
    {OpId::rope, "simd", "heads in line: a token's angles are read once", fast_floats, prepare_rope_simd,
     supports_rope_simd},
    {OpId::rope, "reference", summary::exact, any_dtype, prepare_rope_reference},
    {.ops = OpId::kv_append,
     .name = "rows",
     .summary = "whole heads of tokens of the caches' dtype, in any layout",
     .prepare = prepare_kv_append_rows,
     .supports = supports_kv_append_rows,
     .any_alignment = true},
    {OpId::kv_append, "reference", summary::moved, any_dtype, prepare_kv_append_reference},
};

}  // namespace xpuruntime::cpu
