#pragma once

#include <memory>

#include "backends/cpu/norm/kernels.h"

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
    {OpId::add_rms_norm, "simd", "the sum is normalised while it is in cache", fast_floats, prepare_layer_norm_simd,
     supports_layer_norm_simd, workspace_layer_norm_simd},
    {OpId::add_rms_norm, "reference", "any dtype and layout, computed in float64", any_dtype,
     prepare_layer_norm_reference},
    {OpId::silu_mul, "simd", "vectors of f32, any layout", fast_floats, prepare_silu_mul_simd},
    {OpId::silu_mul, "reference", "any dtype and layout, computed in float64", any_dtype, prepare_silu_mul_reference},
    {OpId::rope, "simd", "heads in line: a token's angles are read once", fast_floats, prepare_rope_simd,
     supports_rope_simd},
    {OpId::rope, "reference", "any dtype and layout, computed in float64", any_dtype, prepare_rope_reference},
    {OpId::kv_append, "rows", "whole heads of tokens of the caches' dtype", any_dtype, prepare_kv_append_rows,
     supports_kv_append_rows},
    {OpId::kv_append, "reference", "any pair of dtypes and layouts", any_dtype, prepare_kv_append_reference},
};

}  // namespace xpuruntime::cpu
