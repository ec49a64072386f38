#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family.

namespace xpuruntime::cpu {

Verdict supports_softmax_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_softmax_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_softmax_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_softmax_reference(const Problem& problem, const PrepareContext& context);
// What they do with backward problems.
std::unique_ptr<const Plan> prepare_softmax_backward_simd(const Problem& problem);
std::unique_ptr<const Plan> prepare_softmax_backward_reference(const Problem& problem);

// Norms of rows, forward also with a residual.
/// Names the class of problems that differ in the number of rows; backward each problem is its own.
std::optional<Problem> layer_norm_of_any_rows(const Problem& problem);
Verdict supports_layer_norm_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_layer_norm_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_layer_norm_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_layer_norm_reference(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_layer_norm_reference(const Problem& problem, const DeviceProfile& profile);
// What they do with backward problems.
std::uint64_t workspace_layer_norm_backward(const Problem& problem);
std::unique_ptr<const Plan> prepare_layer_norm_backward_simd(const Problem& problem);
std::unique_ptr<const Plan> prepare_layer_norm_backward_reference(const Problem& problem);

Verdict supports_normalize_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_normalize_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_normalize_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_batch_norm_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_batch_norm_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_batch_norm_simd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_batch_norm_reference(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cpu
