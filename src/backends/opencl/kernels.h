#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::opencl {

// What the rows of table.h are made of.

// Products: matmul.cpp, clblast.cpp.
Verdict supports_product(const Problem& problem, const DeviceProfile& profile);
Verdict supports_matmul_tiled(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_matmul_tiled(const Problem& problem, const PrepareContext& context);
std::vector<std::string> matmul_tiled_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_matmul_tiled_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token);
std::uint64_t matmul_block_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_matmul_block(const Problem& problem, const PrepareContext& context);
std::vector<std::string> matmul_block_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_matmul_block_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token);
Verdict supports_matmul_clblast(const Problem& problem, const DeviceProfile& profile);
std::uint64_t matmul_clblast_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_matmul_clblast(const Problem& problem, const PrepareContext& context);
Verdict supports_matmul_rows(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_matmul_rows(const Problem& problem, const PrepareContext& context);
Verdict supports_matmul_split(const Problem& problem, const DeviceProfile& profile);
std::uint64_t matmul_split_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_matmul_split(const Problem& problem, const PrepareContext& context);
std::vector<std::string> matmul_split_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_matmul_split_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token);
std::unique_ptr<const Plan> prepare_matmul_direct(const Problem& problem, const PrepareContext& context);

Verdict supports_elementwise(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_elementwise(const Problem& problem, const PrepareContext& context);
Verdict supports_cast(const Problem& problem, const DeviceProfile& profile);
// Convolutions: conv.cpp, conv_product.cpp and conv_tiled.cpp.
Verdict supports_conv_winograd(const Problem& problem, const DeviceProfile& profile);
std::uint64_t conv_winograd_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::vector<std::string> conv_winograd_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_conv_winograd(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_conv_winograd_variant(const Problem& problem, const PrepareContext& context,
                                                          std::string_view token);
Verdict supports_conv_im2col(const Problem& problem, const DeviceProfile& profile);
std::uint64_t conv_im2col_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_im2col(const Problem& problem, const PrepareContext& context);
Verdict supports_conv_tiled(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_tiled(const Problem& problem, const PrepareContext& context);
Verdict has_modest_windows(const Problem& problem, const DeviceProfile& profile);
std::uint64_t conv_implicit_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_implicit(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_conv_direct(const Problem& problem, const PrepareContext& context);

// attention.cpp.
Verdict supports_attention_single_query(const Problem& problem, const DeviceProfile& profile);
std::uint64_t attention_single_query_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_attention_single_query(const Problem& problem, const PrepareContext& context);
Verdict supports_attention_tiled(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_attention_tiled(const Problem& problem, const PrepareContext& context);
Verdict supports_attention_direct(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_attention_direct(const Problem& problem, const PrepareContext& context);

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

// Lines: softmaxes, norms of rows, normalize.
Verdict supports_softmax(const Problem& problem, const DeviceProfile& profile);
std::vector<std::string> softmax_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_softmax(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_softmax_variant(const Problem& problem, const PrepareContext& context,
                                                    std::string_view token);
Verdict supports_norm(const Problem& problem, const DeviceProfile& profile);
std::uint64_t norm_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::vector<std::string> norm_variants(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_norm(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_norm_variant(const Problem& problem, const PrepareContext& context,
                                                 std::string_view token);

Verdict supports_reduce(const Problem& problem, const DeviceProfile& profile);
std::uint64_t reduce_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_reduce(const Problem& problem, const PrepareContext& context);

std::uint64_t batch_norm_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_batch_norm(const Problem& problem, const PrepareContext& context);

Verdict supports_pool(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_pool(const Problem& problem, const PrepareContext& context);

// Losses.
Verdict supports_class_loss(const Problem& problem, const DeviceProfile& profile);
std::uint64_t class_loss_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_class_loss(const Problem& problem, const PrepareContext& context);
std::uint64_t pointwise_loss_workspace_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_pointwise_loss(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::opencl
