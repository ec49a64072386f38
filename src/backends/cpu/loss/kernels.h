#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

// cross_entropy and nll_loss.
Verdict supports_class_loss_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_class_loss_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_class_loss_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_class_loss_reference(const Problem& problem, const PrepareContext& context);
// What they do with backward problems.
Verdict supports_class_loss_backward(const Problem& problem);
std::unique_ptr<const Plan> prepare_class_loss_backward_simd(const Problem& problem);

// Losses of elements.
Verdict supports_pointwise_loss_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_pointwise_loss_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_pointwise_loss_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_pointwise_loss_reference(const Problem& problem, const PrepareContext& context);

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

}  // namespace xpuruntime::cpu
