#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family.

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

/// What the sum of a pointwise loss is divided by: 1, all elements, or the batch.
double loss_divisor(const Problem& problem);

}  // namespace xpuruntime::cpu
