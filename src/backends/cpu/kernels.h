#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions behind the rows of the CPU's kernel table (backend.cpp).

namespace xpuruntime::cpu {

/// Takes every problem that passed the op's own checks.
Verdict supports_forward(const Problem& problem, const DeviceProfile& profile);

std::unique_ptr<const Plan> prepare_matmul_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_matmul_openblas(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_matmul_openblas(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_add_reference(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_relu_reference(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_cast_reference(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_softmax_reference(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cpu
