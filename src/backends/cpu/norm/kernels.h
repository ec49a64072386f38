#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

SupportsFunction supports_softmax_simd;
WorkspaceFunction workspace_softmax_simd;
PrepareFunction prepare_softmax_simd, prepare_softmax_reference;
// What they do with backward problems.
std::unique_ptr<const Plan> prepare_softmax_backward_simd(const Problem& problem);
std::unique_ptr<const Plan> prepare_softmax_backward_reference(const Problem& problem);

// Norms of rows, forward also with a residual.
/// Names the class of problems that differ in the number of rows; backward each problem is its own.
std::optional<Problem> layer_norm_of_any_rows(const Problem& problem);
SupportsFunction supports_layer_norm_simd;
WorkspaceFunction workspace_layer_norm_simd, workspace_layer_norm_reference;
PrepareFunction prepare_layer_norm_simd, prepare_layer_norm_reference;
// What they do with backward problems.
std::uint64_t workspace_layer_norm_backward(const Problem& problem);
std::unique_ptr<const Plan> prepare_layer_norm_backward_simd(const Problem& problem);
std::unique_ptr<const Plan> prepare_layer_norm_backward_reference(const Problem& problem);

SupportsFunction supports_normalize_simd, supports_batch_norm_simd;
WorkspaceFunction workspace_batch_norm_simd;
PrepareFunction prepare_normalize_simd, prepare_normalize_reference, prepare_batch_norm_simd,
    prepare_batch_norm_reference;

inline constexpr KernelSpec norm_rows[] = {
    {batch_norm_ops, "simd", "planes or channels last: vectors along either", fast_floats, prepare_batch_norm_simd,
     supports_batch_norm_simd, workspace_batch_norm_simd},
    {batch_norm_ops, "reference", summary::exact, any_dtype, prepare_batch_norm_reference},
    by_class(layer_norm_of_any_rows,
             with_backward({row_norm_ops, "simd", "two passes over a row in cache", fast_floats,
                            prepare_layer_norm_simd, supports_layer_norm_simd, workspace_layer_norm_simd})),
    with_backward({row_norm_ops, "reference", summary::exact, any_dtype, prepare_layer_norm_reference, nullptr,
                   workspace_layer_norm_reference}),
    {OpId::normalize, "simd", "p of 0, 1, 2 or infinity, any axis", fast_floats, prepare_normalize_simd,
     supports_normalize_simd},
    {OpId::normalize, "reference", summary::exact, any_dtype, prepare_normalize_reference},
    with_backward({softmax_ops, "simd", "any axis: rows, or vectors across columns", fast_floats, prepare_softmax_simd,
                   supports_softmax_simd, workspace_softmax_simd}),
    with_backward({softmax_ops, "reference", summary::exact, any_dtype, prepare_softmax_reference}),
    by_class(layer_norm_of_any_rows,
             {OpId::add_rms_norm, "simd", "the sum is normalised while it is in cache", fast_floats,
              prepare_layer_norm_simd, supports_layer_norm_simd, workspace_layer_norm_simd}),
    {OpId::add_rms_norm, "reference", summary::exact, any_dtype, prepare_layer_norm_reference},
};

}  // namespace xpuruntime::cpu
