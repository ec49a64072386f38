#pragma once

#include "backends/cpu/base/rows.h"

// What a decoder's layer does between its products.

namespace xpuruntime::cpu {

PrepareFunction prepare_silu_mul_simd, prepare_silu_mul_reference;
SupportsFunction supports_rope_simd, supports_kv_append_rows;
PrepareFunction prepare_rope_simd, prepare_rope_reference, prepare_kv_append_rows, prepare_kv_append_reference;

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
