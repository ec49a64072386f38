#pragma once

#include <string>

#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/matmul/kernels.h"

// The rows of oneDNN in the CPU's table, and their functions. A build without oneDNN has them too (absent.cpp): they
// refuse every problem with that reason.

namespace xpuruntime::cpu {

/// matmul and linear.
SupportsFunction supports_product_onednn;
WorkspaceFunction workspace_product_onednn;
PrepareFunction prepare_product_onednn;

/// conv2d and conv3d.
SupportsFunction supports_conv_onednn;
WorkspaceFunction workspace_conv_onednn;
PrepareFunction prepare_conv_onednn;

/// "2.6.3"; empty in a build without it, and where it could not be opened.
std::string onednn_version();

inline constexpr KernelSpec onednn_product = {
    .ops = product_ops,
    .name = "onednn",
    .summary = "oneDNN with AVX-512 and AMX",
    .dtypes = {DataType::float32, DataType::bfloat16, DataType::int8, DataType::uint8},
    .prepare = prepare_product_onednn,
    .supports = supports_product_onednn,
    .workspace_bytes = workspace_product_onednn,
    .outputs = {DataType::float32, DataType::bfloat16, DataType::int32},
    .needs = "a build with oneDNN",
    .libraries = "onednn"};

inline constexpr KernelSpec onednn_rows[] = {
    product_row<onednn_product>(),
    {.ops = conv_ops,
     .name = "onednn",
     .summary = "oneDNN in its own layouts: AVX-512 and AMX",
     .dtypes = {DataType::float32, DataType::bfloat16},
     .prepare = prepare_conv_onednn,
     .supports = supports_conv_onednn,
     .workspace_bytes = workspace_conv_onednn,
     .directions = Directions::both,
     .needs = "a build with oneDNN",
     .libraries = "onednn"},
};

}  // namespace xpuruntime::cpu
