#pragma once

#include "xpuruntime/registry/kernel.h"

// What the rows of table.h point to, one block a kernel.

namespace xpuruntime::cuda {

Verdict supports_skinny(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_skinny(const Problem& problem, const PrepareContext& context);
std::vector<std::string> skinny_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_skinny_variant(const Problem& problem, const PrepareContext& context,
                                                   std::string_view token);

Verdict supports_cublaslt(const Problem& problem, const DeviceProfile& profile);
std::uint64_t cublaslt_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cublaslt(const Problem& problem, const PrepareContext& context);
std::vector<std::string> cublaslt_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_cublaslt_variant(const Problem& problem, const PrepareContext& context,
                                                     std::string_view token);

Verdict supports_cublas(const Problem& problem, const DeviceProfile& profile);
std::uint64_t cublas_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cublas(const Problem& problem, const PrepareContext& context);

Verdict supports_cutlass(const Problem& problem, const DeviceProfile& profile);
std::uint64_t cutlass_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cutlass(const Problem& problem, const PrepareContext& context);
std::vector<std::string> cutlass_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_cutlass_variant(const Problem& problem, const PrepareContext& context,
                                                    std::string_view token);

/// All that their rows let through, where this build has code for the device.
Verdict supports_any(const Problem& problem, const DeviceProfile& profile);
/// The first input and the output are of one dtype; what else there is may be f32 instead.
Verdict has_one_dtype(const Problem& problem, const DeviceProfile& profile);

std::unique_ptr<const Plan> prepare_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_elementwise(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_elementwise(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_cast(const Problem& problem, const PrepareContext& context);

Verdict supports_dropout(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_dropout(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_unscale(const Problem& problem, const PrepareContext& context);

Verdict supports_copy(const Problem& problem, const DeviceProfile& profile);  // also transpose, slice and concat
std::unique_ptr<const Plan> prepare_copy(const Problem& problem, const PrepareContext& context);

Verdict supports_embedding(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_embedding(const Problem& problem, const PrepareContext& context);

Verdict supports_rope(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_rope(const Problem& problem, const PrepareContext& context);

Verdict supports_kv_append(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_kv_append(const Problem& problem, const PrepareContext& context);

Verdict supports_rows(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_rows(const Problem& problem, const PrepareContext& context);

Verdict supports_cross_entropy(const Problem& problem, const DeviceProfile& profile);
std::uint64_t cross_entropy_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_cross_entropy(const Problem& problem, const PrepareContext& context);

Verdict supports_nll_loss(const Problem& problem, const DeviceProfile& profile);
std::uint64_t nll_loss_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_nll_loss(const Problem& problem, const PrepareContext& context);

Verdict supports_pointwise_loss(const Problem& problem, const DeviceProfile& profile);
std::uint64_t pointwise_loss_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_pointwise_loss(const Problem& problem, const PrepareContext& context);

Verdict supports_reduce(const Problem& problem, const DeviceProfile& profile);
std::uint64_t reduce_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_reduce(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cuda
