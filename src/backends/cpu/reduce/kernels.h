#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

SupportsFunction supports_reduce_simd;
WorkspaceFunction workspace_reduce_simd;
PrepareFunction prepare_reduce_simd, prepare_reduce_reference;

inline constexpr KernelSpec reduce_rows[] = {
    {.ops = reduce_ops,
     .name = "simd",
     .summary = "any axes: rows or vectors across columns, in fixed chunks",
     .dtypes = fast_floats,
     .prepare = prepare_reduce_simd,
     .supports = supports_reduce_simd,
     .workspace_bytes = workspace_reduce_simd,
     .outputs = floats},
    {reduce_ops | OpId::reduce_prod, "reference", summary::exact, any_dtype, prepare_reduce_reference},
};

/// The one that computes a stage of another kernel.
inline const KernelSpec& reduction_for(const Problem& problem) {
  return reduce_rows[0].accepts(problem, {}).supported ? reduce_rows[0] : reduce_rows[1];
}

}  // namespace xpuruntime::cpu
