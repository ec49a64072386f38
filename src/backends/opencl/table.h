#pragma once

#include "backends/opencl/kernels.h"

// Needs no headers of OpenCL: the catalogue reads these rows in every build.

namespace xpuruntime::opencl {

namespace summary {
inline constexpr std::string_view elementwise = "any layout, vectors where neighbours are contiguous";
}

inline constexpr DataTypeSet integers = {DataType::int64, DataType::int32, DataType::int16, DataType::int8,
                                         DataType::uint8};

/// Every kernel of this backend, fastest first, reference last.
inline constexpr KernelSpec table[] = {
    {.ops = OpId::matmul,
     .name = "MATMUL_TILED_LOCAL",
     .summary = "tiles in local memory",
     .dtypes = fast_floats,
     .prepare = prepare_matmul_tiled,
     .supports = supports_matmul_tiled,
     .any_alignment = true,
     .libraries = "opencl",
     .variants = matmul_tiled_variants,
     .prepare_variant = prepare_matmul_tiled_variant},
    {.ops = OpId::matmul,
     .name = "MATMUL_DIRECT",
     .summary = "any layout, one work-item per output",
     .dtypes = fast_floats,
     .prepare = prepare_matmul_direct,
     .any_alignment = true,
     .libraries = "opencl"},
    {.ops = OpId::add,
     .name = "ADD_DIRECT",
     .summary = summary::elementwise,
     .dtypes = fast_floats | integers,
     .prepare = prepare_elementwise,
     .supports = supports_elementwise,
     .any_alignment = true,
     .libraries = "opencl"},
    {.ops = {OpId::sub, OpId::mul},
     .name = "ELEMENTWISE_DIRECT",
     .summary = summary::elementwise,
     .dtypes = fast_floats | integers,
     .prepare = prepare_elementwise,
     .supports = supports_elementwise,
     .libraries = "opencl"},
    {.ops = function_ops | OpList{OpId::div, OpId::silu_mul},
     .name = "ELEMENTWISE_DIRECT",
     .summary = summary::elementwise,
     .dtypes = fast_floats,
     .prepare = prepare_elementwise,
     .libraries = "opencl"},
    with_backward({.ops = activation_ops,
                   .name = "ELEMENTWISE_DIRECT",
                   .summary = summary::elementwise,
                   .dtypes = fast_floats,
                   .prepare = prepare_elementwise,
                   .libraries = "opencl"}),
    {.ops = OpId::dropout,
     .name = "ELEMENTWISE_DIRECT",
     .summary = "any layout, the mask of every device",
     .dtypes = fast_floats,
     .prepare = prepare_dropout,
     .libraries = "opencl"},
    {.ops = OpId::unscale,
     .name = "ELEMENTWISE_DIRECT",
     .summary = summary::elementwise,
     .dtypes = fast_floats,
     .prepare = prepare_unscale,
     .supports = supports_unscale,
     .outputs = DataTypeSet{DataType::float32},
     .libraries = "opencl"},
    {.ops = OpId::cast,
     .name = "CAST_DIRECT",
     .summary = "exact, ties to even; any pair of dtypes",
     .prepare = prepare_cast,
     .supports = supports_cast,
     .libraries = "opencl"},
    {.ops = {OpId::copy, OpId::transpose, OpId::slice, OpId::concat},
     .name = "COPY_DIRECT",
     .summary = "any layout of one dtype, tiles where the layouts cross",
     .prepare = prepare_copy,
     .supports = supports_copy,
     .any_alignment = true,
     .libraries = "opencl"},
    {.ops = OpId::embedding,
     .name = "EMBEDDING_DIRECT",
     .summary = "copies rows of the table, any layout",
     .prepare = prepare_embedding,
     .supports = supports_embedding,
     .libraries = "opencl"},
    {.ops = OpId::rope,
     .name = "ROPE_DIRECT",
     .summary = "any layout, vectors where pairs are contiguous",
     .dtypes = fast_floats,
     .prepare = prepare_rope,
     .libraries = "opencl"},
    {.ops = OpId::kv_append,
     .name = "KV_APPEND_DIRECT",
     .summary = "tokens of the caches' dtype, any layout; copies caches that are not outputs",
     .prepare = prepare_kv_append,
     .supports = supports_kv_append,
     .libraries = "opencl"},
};

/// Names that policies know and no kernel has yet.
inline constexpr KernelSpec planned[] = {
    {OpId::conv2d, "CONV2D_WINOGRAD", "Winograd for 3x3 filters with stride 1"},
    {OpId::conv2d, "CONV2D_IM2COL", "1x1 filters as a matrix product"},
    {OpId::conv2d, "CONV2D_TILED_LOCAL", "tiles in local memory: integrated GPUs"},
    {OpId::conv2d, "CONV2D_IMPLICIT_GEMM", "the general case"},
    {OpId::conv2d, "CONV2D_NAIVE_SMALL", "tiny inputs"},
};

}  // namespace xpuruntime::opencl
