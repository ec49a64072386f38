#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family.

namespace xpuruntime::cpu {

std::unique_ptr<const Plan> prepare_product_reference(const Problem& problem, const PrepareContext& context);
/// What the references do with backward problems.
std::unique_ptr<const Plan> prepare_product_backward_reference(const Problem& problem);

Verdict supports_product_openblas(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_openblas(const Problem& problem, const PrepareContext& context);

// Our own kernels take matmul and linear alike.

std::uint64_t workspace_product_reference(const Problem& problem, const DeviceProfile& profile);

Verdict supports_product_packed(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_packed(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_packed(const Problem& problem, const PrepareContext& context);
inline constexpr KernelSpec packed_product = {{OpId::matmul, OpId::linear},
                                              "packed",
                                              "our own blocked product: any layout",
                                              fast_floats,
                                              prepare_product_packed,
                                              supports_product_packed,
                                              workspace_product_packed};

Verdict supports_product_skinny(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_skinny(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_skinny(const Problem& problem, const PrepareContext& context);

Verdict supports_product_small(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_small(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_small(const Problem& problem, const PrepareContext& context);

Verdict supports_product_int8(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_int8(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_int8(const Problem& problem, const PrepareContext& context);

Verdict supports_product_amx(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_amx(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_amx(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cpu
