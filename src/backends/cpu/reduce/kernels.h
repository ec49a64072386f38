#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

Verdict supports_reduce_simd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_reduce_simd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_reduce_simd(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_reduce_reference(const Problem& problem, const PrepareContext& context);

inline constexpr KernelSpec reduce_rows[] = {
    {.ops = reduce_ops,
     .name = "simd",
     .summary = "any axes: rows or vectors across columns, in fixed chunks",
     .dtypes = fast_floats,
     .prepare = prepare_reduce_simd,
     .supports = supports_reduce_simd,
     .workspace_bytes = workspace_reduce_simd,
     .outputs = floats},
    {reduce_ops, "reference", summary::exact, any_dtype, prepare_reduce_reference},
};

/// The one that computes a stage of another kernel.
inline const KernelSpec& reduction_for(const Problem& problem) {
  return reduce_rows[0].accepts(problem, {}).supported ? reduce_rows[0] : reduce_rows[1];
}

}  // namespace xpuruntime::cpu
