#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions: functions of one element and of two, comparisons,
// logic and choices, without backward.

namespace xpuruntime::cpu {

SupportsFunction supports_pairs_simd, supports_integer_pairs, supports_tests_simd, supports_where_rows;
PrepareFunction prepare_functions_simd, prepare_functions_library, prepare_functions_reference, prepare_pairs_simd,
    prepare_pairs_library, prepare_pairs_reference, prepare_tests_simd, prepare_where_rows, prepare_where_reference;

// Beside those of library_ops.
inline constexpr OpList vector_functions = {OpId::abs,      OpId::neg,          OpId::sign,       OpId::floor,
                                            OpId::ceil,     OpId::round,        OpId::reciprocal, OpId::erf,
                                            OpId::softplus, OpId::leaky_relu,   OpId::elu,        OpId::hard_swish,
                                            OpId::clip,     OpId::hard_sigmoid, OpId::sin,        OpId::cos};
inline constexpr OpList test_ops = comparison_ops | OpList{OpId::isnan, OpId::isinf, OpId::logical_not};
inline constexpr OpList library_pairs = {OpId::pow, OpId::remainder, OpId::fmod};
inline constexpr DataTypeSet vector_integers = {DataType::int64, DataType::int32, DataType::int8, DataType::uint8};
inline constexpr std::string_view by_library = "the C library's function of each element in f32, on several threads";

inline constexpr KernelSpec pointwise_rows[] = {
    {vector_functions, "simd", summary::vectors, fast_floats, prepare_functions_simd},
    {vector_functions, "reference", summary::exact, any_dtype, prepare_functions_reference},
    {library_ops, "library", by_library, fast_floats, prepare_functions_library},
    {library_ops, "reference", summary::exact, any_dtype, prepare_functions_reference},
    {extreme_ops, "simd", summary::vectors, fast_floats | vector_integers, prepare_pairs_simd, supports_pairs_simd},
    {OpId::prelu, "simd", summary::vectors, fast_floats, prepare_pairs_simd},
    {library_pairs, "library", by_library, fast_floats, prepare_pairs_library},
    {extreme_ops | library_pairs | OpList{OpId::prelu, OpId::trunc_div}, "reference", summary::exact, any_dtype,
     prepare_pairs_reference},
    {bitwise_ops | logical_ops, "simd", "vectors of one integer type, any layout",
     vector_integers | DataTypeSet{DataType::boolean}, prepare_pairs_simd, supports_integer_pairs},
    {bitwise_ops | logical_ops | OpList{OpId::shift_left, OpId::shift_right}, "reference",
     "any integers and layout, one by one", any_dtype, prepare_pairs_reference},
    {OpId::bitwise_not, "reference", "any integers and layout, one by one", any_dtype, prepare_functions_reference},
    {.ops = test_ops,
     .name = "simd",
     .summary = "vectors of floats or of one integer type, any layout",
     .dtypes = fast_floats | vector_integers | DataTypeSet{DataType::boolean},
     .prepare = prepare_tests_simd,
     .supports = supports_tests_simd,
     .outputs = any_dtype},
    {comparison_ops, "reference", "any dtype and layout, one by one", any_dtype, prepare_pairs_reference},
    {{OpId::isnan, OpId::isinf, OpId::logical_not},
     "reference",
     "any dtype and layout, one by one",
     any_dtype,
     prepare_functions_reference},
    {OpId::where, "rows", "inputs of one dtype, row by row on several threads", any_dtype, prepare_where_rows,
     supports_where_rows},
    {OpId::where, "reference", summary::moved, any_dtype, prepare_where_reference},
};

}  // namespace xpuruntime::cpu
