#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

/// Whole slices of one dtype, all contiguous.
SupportsFunction supports_gather_rows, supports_scatter_rows, supports_arranged_rows, supports_arg_rows;
PrepareFunction prepare_gather_rows, prepare_gather_reference, prepare_scatter_rows, prepare_scatter_reference,
    prepare_arranged_rows, prepare_arranged_reference, prepare_trilu_rows, prepare_trilu_reference,
    prepare_cumsum_reference, prepare_arg_rows, prepare_arg_reference, prepare_top_k_reference,
    prepare_one_hot_reference, prepare_reverse_sequence_rows, prepare_reverse_sequence_reference;
WorkspaceFunction workspace_top_k;

inline constexpr OpList gather_ops = {OpId::gather, OpId::gather_elements, OpId::gather_nd};
inline constexpr OpList scatter_ops = {OpId::scatter_elements, OpId::scatter_nd};
inline constexpr OpList arranging_ops = {OpId::pad, OpId::tile, OpId::flip};
inline constexpr OpList arg_ops = {OpId::arg_max, OpId::arg_min};

inline constexpr KernelSpec indexing_rows[] = {
    {gather_ops, "rows", "copies whole slices, or elements in line", any_dtype, prepare_gather_rows,
     supports_gather_rows},
    {gather_ops, "reference", summary::moved, any_dtype, prepare_gather_reference},
    {scatter_ops, "rows", "writes whole slices, without a reduction", any_dtype, prepare_scatter_rows,
     supports_scatter_rows},
    {scatter_ops, "reference", "any dtype and layout, reduced in float64", any_dtype, prepare_scatter_reference},
    {arranging_ops, "rows", "copies and fills runs of each row", any_dtype, prepare_arranged_rows,
     supports_arranged_rows},
    {arranging_ops, "reference", summary::moved, any_dtype, prepare_arranged_reference},
    {OpId::trilu, "rows", "copies a part of each row", any_dtype, prepare_trilu_rows, supports_arranged_rows},
    {OpId::trilu, "reference", summary::moved, any_dtype, prepare_trilu_reference},
    {OpId::reverse_sequence, "rows", "copies whole slices", any_dtype, prepare_reverse_sequence_rows,
     supports_gather_rows},
    {OpId::reverse_sequence, "reference", summary::moved, any_dtype, prepare_reverse_sequence_reference},
    {OpId::cumsum, "reference", summary::exact, any_dtype, prepare_cumsum_reference},
    {.ops = arg_ops,
     .name = "rows",
     .summary = "f32, along the last dim or across it",
     .dtypes = DataType::float32,
     .prepare = prepare_arg_rows,
     .supports = supports_arg_rows,
     .outputs = any_dtype},
    {arg_ops, "reference", "any dtype and layout", any_dtype, prepare_arg_reference},
    {.ops = OpId::top_k,
     .name = "reference",
     .summary = "any dtype and layout",
     .prepare = prepare_top_k_reference,
     .workspace_bytes = workspace_top_k},
    {OpId::one_hot, "reference", summary::moved, any_dtype, prepare_one_hot_reference},
};

}  // namespace xpuruntime::cpu
