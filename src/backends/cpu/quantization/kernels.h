#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

SupportsFunction supports_quantize_simd, supports_dequantize_simd;
WorkspaceFunction workspace_quantized_rows;
PrepareFunction prepare_quantize_simd, prepare_dequantize_simd, prepare_quantize_reference,
    prepare_dequantize_reference;

inline constexpr DataTypeSet bytes = {DataType::int8, DataType::uint8};

inline constexpr KernelSpec quantization_rows[] = {
    {.ops = OpId::quantize,
     .name = "simd",
     .summary = "vectors of f32: one scale, or one for each slice",
     .dtypes = fast_floats | DataTypeSet{DataType::int32},
     .prepare = prepare_quantize_simd,
     .supports = supports_quantize_simd,
     .workspace_bytes = workspace_quantized_rows,
     .outputs = bytes},
    {OpId::quantize, "reference", "any dtype, layout and blocks", any_dtype, prepare_quantize_reference},
    {.ops = OpId::dequantize,
     .name = "simd",
     .summary = "vectors of f32: one scale, or one for each slice",
     .dtypes = fast_floats | bytes | DataTypeSet{DataType::int32},
     .prepare = prepare_dequantize_simd,
     .supports = supports_dequantize_simd,
     .workspace_bytes = workspace_quantized_rows,
     .outputs = fast_floats},
    {OpId::dequantize, "reference", "any dtype, layout and blocks", any_dtype, prepare_dequantize_reference},
};

}  // namespace xpuruntime::cpu
