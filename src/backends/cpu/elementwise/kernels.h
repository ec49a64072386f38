#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family.

namespace xpuruntime::cpu {

// relu gelu silu sigmoid tanh log exp sqrt cast
std::unique_ptr<const Plan> prepare_unary_reference(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_unary_simd(const Problem& problem, const PrepareContext& context);
/// What they do with backward problems of activations.
std::unique_ptr<const Plan> prepare_unary_backward_reference(const Problem& problem);
std::unique_ptr<const Plan> prepare_unary_backward_simd(const Problem& problem);

// add sub mul div
std::unique_ptr<const Plan> prepare_binary_reference(const Problem& problem, const PrepareContext& context);
Verdict supports_binary_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_binary_simd(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_dropout_reference(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_dropout_simd(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_unscale_reference(const Problem& problem, const PrepareContext& context);
Verdict supports_unscale_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_unscale_simd(const Problem& problem, const PrepareContext& context);

Verdict supports_cast_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cast_simd(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cpu
