#pragma once

#include "xpuruntime/registry/kernel.h"

// What the rows of table.cpp point to, one block a kernel.

namespace xpuruntime::cuda {

Verdict supports_skinny(const Problem& problem, const DeviceProfile& profile);
bool prefers_skinny(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_skinny(const Problem& problem, const PrepareContext& context);

Verdict supports_cublaslt(const Problem& problem, const DeviceProfile& profile);
bool prefers_cublaslt(const Problem& problem, const DeviceProfile& profile);
std::uint64_t cublaslt_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cublaslt(const Problem& problem, const PrepareContext& context);
std::vector<std::string> cublaslt_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_cublaslt_variant(const Problem& problem, const PrepareContext& context,
                                                     std::string_view token);

Verdict supports_reference(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_add(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_add(const Problem& problem, const PrepareContext& context);

Verdict supports_cast(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cast(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cuda
