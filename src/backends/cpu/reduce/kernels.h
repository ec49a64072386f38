#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family.

namespace xpuruntime::cpu {

Verdict supports_reduce_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_reduce_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_reduce_simd(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_reduce_reference(const Problem& problem, const PrepareContext& context);

inline constexpr KernelSpec reduce_simd = {
    .ops = {OpId::reduce_sum, OpId::reduce_mean, OpId::reduce_max, OpId::reduce_min},
    .name = "simd",
    .summary = "any axes: rows or vectors across columns, in fixed chunks",
    .dtypes = fast_floats,
    .prepare = prepare_reduce_simd,
    .supports = supports_reduce_simd,
    .workspace_bytes = workspace_reduce_simd,
    .outputs = floats};
inline constexpr KernelSpec reduce_reference = {
    reduce_simd.ops, "reference", "any dtype and layout, computed in float64", any_dtype, prepare_reduce_reference};

/// The one that computes a stage of another kernel.
inline const KernelSpec& reduction_for(const Problem& problem) {
  return reduce_simd.accepts(problem, {}).supported ? reduce_simd : reduce_reference;
}

}  // namespace xpuruntime::cpu
