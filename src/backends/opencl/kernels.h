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

// Pointwise: functions of one element and of two, tests and choices. Each of the long ones has a kernel of its own.
SupportsFunction supports_pointwise, supports_pointwise_any, supports_where;
PrepareFunction prepare_pointwise, prepare_pointwise_any, prepare_where;
inline constexpr OpList pointwise_ops = {
    OpId::abs,     OpId::neg,        OpId::sign, OpId::floor, OpId::ceil,       OpId::round,        OpId::maximum,
    OpId::minimum, OpId::reciprocal, OpId::clip, OpId::prelu, OpId::leaky_relu, OpId::hard_sigmoid, OpId::hard_swish};
inline constexpr OpList long_functions =
    library_ops | OpList{OpId::erf, OpId::sin, OpId::cos, OpId::softplus, OpId::elu};
inline constexpr OpList long_pairs = {OpId::pow, OpId::fmod, OpId::remainder};
inline constexpr OpList test_ops = comparison_ops | OpList{OpId::isnan, OpId::isinf};
inline constexpr OpList integer_ops =
    logical_ops | bitwise_ops |
    OpList{OpId::logical_not, OpId::bitwise_not, OpId::trunc_div, OpId::shift_left, OpId::shift_right};

// Taken by indices, arranged, and the places of extremes: indexing.cpp.
SupportsFunction supports_take, supports_arrange, supports_arg;
PrepareFunction prepare_take, prepare_arrange, prepare_arg;

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
