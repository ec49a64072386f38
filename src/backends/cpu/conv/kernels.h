#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions. Each serves conv2d and conv3d alike, but for
// winograd.

namespace xpuruntime::cpu {

SupportsFunction supports_conv_direct, supports_conv_im2col, supports_conv_winograd, supports_conv_depthwise,
    supports_conv_int8;
WorkspaceFunction workspace_conv_direct, workspace_conv_im2col, workspace_conv_winograd, workspace_conv_depthwise,
    workspace_conv_int8;
PrepareFunction prepare_conv_direct, prepare_conv_im2col, prepare_conv_winograd, prepare_conv_depthwise,
    prepare_conv_int8, prepare_conv_reference;
// What they do with backward problems.
Verdict supports_conv_im2col_backward(const Problem& problem);
WorkspaceFunction workspace_conv_im2col_backward;
PrepareFunction prepare_conv_im2col_backward;
std::unique_ptr<const Plan> prepare_conv_backward_reference(const Problem& problem);

inline constexpr KernelSpec conv_rows[] = {
    {conv_ops, "depthwise", "one input channel per group: vectors along rows", fast_floats, prepare_conv_depthwise,
     supports_conv_depthwise, workspace_conv_depthwise},
    {conv_ops, "direct", "sums in registers, no matrix of columns: most shapes", fast_floats, prepare_conv_direct,
     supports_conv_direct, workspace_conv_direct},
    {OpId::conv2d, "winograd", "3x3 filters with stride 1: large images, not too many channels", fast_floats,
     prepare_conv_winograd, supports_conv_winograd, workspace_conv_winograd},
    {.ops = conv_ops,
     .name = "int8",
     .summary = "exact, tiles of columns times the weight, with VNNI or dot product where there is one",
     .dtypes = {DataType::int8, DataType::uint8},
     .prepare = prepare_conv_int8,
     .supports = supports_conv_int8,
     .workspace_bytes = workspace_conv_int8,
     .outputs = DataType::int32},
    with_backward({conv_ops, "im2col", "tiles of columns times the weight as a matrix product", fast_floats,
                   prepare_conv_im2col, supports_conv_im2col, workspace_conv_im2col}),
    with_backward({conv_ops, "reference", summary::exact, any_dtype, prepare_conv_reference}),
};

}  // namespace xpuruntime::cpu
