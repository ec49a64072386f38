#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

// relu gelu silu sigmoid tanh log exp sqrt cast
PrepareFunction prepare_unary_reference, prepare_unary_simd;
/// What they do with backward problems of activations.
std::unique_ptr<const Plan> prepare_unary_backward_reference(const Problem& problem);
std::unique_ptr<const Plan> prepare_unary_backward_simd(const Problem& problem);

SupportsFunction supports_binary_simd, supports_unscale_simd, supports_cast_simd;
PrepareFunction prepare_binary_reference, prepare_binary_simd, prepare_dropout_reference, prepare_dropout_simd,
    prepare_unscale_reference, prepare_unscale_simd, prepare_cast_simd;

inline constexpr KernelSpec elementwise_rows[] = {
    {OpId::dropout, "simd", "random words made in vectors", fast_floats, prepare_dropout_simd},
    {OpId::dropout, "reference", "any float dtype and layout, one random word at a time", any_dtype,
     prepare_dropout_reference},
    with_backward({activation_ops, "simd", summary::vectors, fast_floats, prepare_unary_simd}),
    with_backward({activation_ops, "reference", summary::exact, any_dtype, prepare_unary_reference}),
    {function_ops, "simd", summary::vectors, fast_floats, prepare_unary_simd},
    {function_ops, "reference", summary::exact, any_dtype, prepare_unary_reference},
    {{OpId::add, OpId::sub, OpId::mul},
     "simd",
     summary::vectors,
     fast_floats | DataTypeSet{DataType::int64, DataType::int32, DataType::int8, DataType::uint8},
     prepare_binary_simd,
     supports_binary_simd},
    {OpId::div, "simd", summary::vectors, fast_floats, prepare_binary_simd, supports_binary_simd},
    {{OpId::add, OpId::sub, OpId::mul, OpId::div}, "reference", summary::exact, any_dtype, prepare_binary_reference},
    {OpId::cast, "simd", "vectors: between f32, f16, bf16 and from and to bytes and i32",
     fast_floats | DataTypeSet{DataType::int32, DataType::int8, DataType::uint8, DataType::boolean}, prepare_cast_simd,
     supports_cast_simd},
    {OpId::cast, "reference", "exact, ties to even, any pair of dtypes", any_dtype, prepare_unary_reference},
    {.ops = OpId::unscale,
     .name = "simd",
     .summary = "gradients of any layout to f32, in one pass",
     .dtypes = fast_floats,
     .prepare = prepare_unscale_simd,
     .supports = supports_unscale_simd,
     .outputs = any_dtype},
    {OpId::unscale, "reference", summary::exact, any_dtype, prepare_unscale_reference},
};

}  // namespace xpuruntime::cpu
