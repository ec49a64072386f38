#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::opencl {

// What the rows of table.h are made of.

Verdict supports_matmul_tiled(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_matmul_tiled(const Problem& problem, const PrepareContext& context);
std::vector<std::string> matmul_tiled_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_matmul_tiled_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token);

std::unique_ptr<const Plan> prepare_matmul_direct(const Problem& problem, const PrepareContext& context);

Verdict supports_elementwise(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_elementwise(const Problem& problem, const PrepareContext& context);
Verdict supports_cast(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cast(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_dropout(const Problem& problem, const PrepareContext& context);
Verdict supports_unscale(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_unscale(const Problem& problem, const PrepareContext& context);

Verdict supports_copy(const Problem& problem, const DeviceProfile& profile);  // also transpose, slice and concat
std::unique_ptr<const Plan> prepare_copy(const Problem& problem, const PrepareContext& context);
Verdict supports_embedding(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_embedding(const Problem& problem, const PrepareContext& context);
Verdict supports_kv_append(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_kv_append(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_rope(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::opencl
