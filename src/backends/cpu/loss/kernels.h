#pragma once

#include "backends/cpu/base/rows.h"
#include "backends/cpu/base/storage.h"
#include "core/pointwise_loss.h"
#include "xpuruntime/core/problem.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

// cross_entropy and nll_loss.
SupportsFunction supports_class_loss_simd;
WorkspaceFunction workspace_class_loss_simd;
PrepareFunction prepare_class_loss_simd, prepare_class_loss_reference;
// What they do with backward problems.
Verdict supports_class_loss_backward(const Problem& problem);
std::unique_ptr<const Plan> prepare_class_loss_backward_simd(const Problem& problem);

// Losses of elements.
SupportsFunction supports_pointwise_loss_simd;
WorkspaceFunction workspace_pointwise_loss_simd;
PrepareFunction prepare_pointwise_loss_simd, prepare_pointwise_loss_reference;

inline constexpr KernelSpec loss_rows[] = {
    with_backward({.ops = class_loss_ops,
                   .name = "simd",
                   .summary = "one pass over the scores, or those of the targets alone",
                   .dtypes = fast_floats,
                   .prepare = prepare_class_loss_simd,
                   .supports = supports_class_loss_simd,
                   .workspace_bytes = workspace_class_loss_simd,
                   .outputs = floats}),
    with_backward({class_loss_ops, "reference", summary::exact, any_dtype, prepare_class_loss_reference}),
    {pointwise_loss_ops, "simd", "one shape: one pass, sums in fixed chunks", fast_floats, prepare_pointwise_loss_simd,
     supports_pointwise_loss_simd, workspace_pointwise_loss_simd},
    {pointwise_loss_ops, "reference", summary::exact, any_dtype, prepare_pointwise_loss_reference},
};

/// The sum of n losses from `offset` on; where `out` is not null they are stored there, in the same dtype.
float pointwise_losses(const PointwiseLossTerms& terms, DataType dtype, const void* x, const void* target,
                       std::int64_t offset, std::int64_t n, void* out);

}  // namespace xpuruntime::cpu
