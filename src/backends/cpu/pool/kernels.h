#pragma once

#include "backends/cpu/base/rows.h"

// The rows of this family in the CPU's table, and their functions. Each serves max and average, two and three dims
// alike.

namespace xpuruntime::cpu {

SupportsFunction supports_pool_simd;
WorkspaceFunction workspace_pool_simd;
PrepareFunction prepare_pool_reference, prepare_pool_simd;

inline constexpr KernelSpec pool_rows[] = {
    {pool_ops, "simd", "one dim after the other, in vectors", fast_floats, prepare_pool_simd, supports_pool_simd,
     workspace_pool_simd},
    {pool_ops, "reference", summary::exact, any_dtype, prepare_pool_reference},
};

}  // namespace xpuruntime::cpu
