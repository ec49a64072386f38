#pragma once

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::opencl {

// What the rows of table.h are made of.

// Products: matmul.cpp, clblast.cpp.
SupportsFunction supports_product, supports_matmul_tiled, supports_matmul_rows, supports_matmul_split,
    supports_matmul_clblast;
WorkspaceFunction matmul_block_workspace_bytes, matmul_split_workspace_bytes, matmul_clblast_workspace_bytes;
PrepareFunction prepare_matmul_tiled, prepare_matmul_block, prepare_matmul_rows, prepare_matmul_split,
    prepare_matmul_direct, prepare_matmul_clblast;
VariantsFunction matmul_tiled_variants, matmul_block_variants, matmul_split_variants;
PrepareVariantFunction prepare_matmul_tiled_variant, prepare_matmul_block_variant, prepare_matmul_split_variant;

// Convolutions: conv.cpp, conv_product.cpp and conv_tiled.cpp.
SupportsFunction supports_conv_winograd, supports_conv_im2col, supports_conv_tiled, has_modest_windows;
WorkspaceFunction conv_winograd_workspace_bytes, conv_im2col_workspace_bytes, conv_implicit_workspace_bytes;
PrepareFunction prepare_conv_winograd, prepare_conv_im2col, prepare_conv_tiled, prepare_conv_implicit,
    prepare_conv_direct;
VariantsFunction conv_winograd_variants;
PrepareVariantFunction prepare_conv_winograd_variant;

// attention.cpp.
SupportsFunction supports_attention_single_query, supports_attention_tiled, supports_attention_direct;
WorkspaceFunction attention_single_query_workspace_bytes;
PrepareFunction prepare_attention_single_query, prepare_attention_tiled, prepare_attention_direct;

// Elementwise, and what moves: copy takes transpose, slice and concat too.
SupportsFunction supports_elementwise, supports_cast, supports_unscale, supports_copy, supports_embedding,
    supports_kv_append;
PrepareFunction prepare_elementwise, prepare_cast, prepare_dropout, prepare_unscale, prepare_copy, prepare_embedding,
    prepare_kv_append, prepare_rope;

// Lines: softmaxes, norms, reductions and pools.
SupportsFunction supports_softmax, supports_norm, supports_reduce, supports_pool;
WorkspaceFunction norm_workspace_bytes, reduce_workspace_bytes, batch_norm_workspace_bytes;
PrepareFunction prepare_softmax, prepare_norm, prepare_reduce, prepare_batch_norm, prepare_pool;
VariantsFunction softmax_variants, norm_variants;
PrepareVariantFunction prepare_softmax_variant, prepare_norm_variant;

// Losses.
SupportsFunction supports_class_loss;
WorkspaceFunction class_loss_workspace_bytes, pointwise_loss_workspace_bytes;
PrepareFunction prepare_class_loss, prepare_pointwise_loss;

}  // namespace xpuruntime::opencl
