#pragma once

#include "backends/cpu/attention/kernels.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/decoder/kernels.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/loss/kernels.h"
#include "backends/cpu/matmul/backward.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/movement/kernels.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/onednn/kernels.h"
#include "backends/cpu/pool/kernels.h"
#include "backends/cpu/reduce/kernels.h"

namespace xpuruntime::cpu {

using enum OpId;
using enum DataType;

inline constexpr OpList products = {matmul, linear}, convs = {conv2d, conv3d};
inline constexpr OpList pools = {max_pool2d, max_pool3d, avg_pool2d, avg_pool3d};
inline constexpr OpList batch_norms = {batch_norm1d, batch_norm2d, batch_norm3d}, row_norms = {layer_norm, rms_norm};
inline constexpr OpList softmaxes = {softmax, log_softmax};
inline constexpr OpList activations = {relu, gelu, silu, sigmoid, tanh}, functions = {log, exp, sqrt};
inline constexpr OpList class_losses = {cross_entropy, nll_loss}, pointwise_losses = {kl_div, poisson_nll_loss};

// What several rows say.
inline constexpr std::string_view exact = "any dtype and layout, computed in float64";
inline constexpr std::string_view moved = "any pair of dtypes and layouts";
inline constexpr std::string_view vectors = "vectors of f32, any layout";

// The products by their forward rows.
inline constexpr KernelSpec small_product = {products,
                                             "small",
                                             "our tiles without packing: extents up to 64, batches of them",
                                             fast_floats,
                                             prepare_product_small,
                                             supports_product_small,
                                             workspace_product_small};
inline constexpr KernelSpec skinny_product = {products,
                                              "skinny",
                                              "up to 8 rows or columns: bound by memory, as in decoding",
                                              fast_floats,
                                              prepare_product_skinny,
                                              supports_product_skinny,
                                              workspace_product_skinny};
inline constexpr KernelSpec amx_product = {.ops = products,
                                           .name = "amx",
                                           .summary = "AMX tiles, the smaller operand packed in each call",
                                           .dtypes = bfloat16,
                                           .prepare = prepare_product_amx,
                                           .supports = supports_product_amx,
                                           .workspace_bytes = workspace_product_amx,
                                           .outputs = fast_floats,
                                           .needs = "a CPU with AMX"};
inline constexpr KernelSpec int8_product = {.ops = products,
                                            .name = "int8",
                                            .summary = "exact, with VNNI or dot product where there is one",
                                            .dtypes = {int8, uint8},
                                            .prepare = prepare_product_int8,
                                            .supports = supports_product_int8,
                                            .workspace_bytes = workspace_product_int8,
                                            .outputs = int32};
inline constexpr KernelSpec onednn_product = {.ops = products,
                                              .name = "onednn",
                                              .summary = "oneDNN with AVX-512 and AMX",
                                              .dtypes = {float32, bfloat16, int8, uint8},
                                              .prepare = prepare_product_onednn,
                                              .supports = supports_product_onednn,
                                              .workspace_bytes = workspace_product_onednn,
                                              .outputs = {float32, bfloat16, int32},
                                              .needs = "a build with oneDNN",
                                              .libraries = "onednn"};
inline constexpr KernelSpec openblas_product = {
    .ops = products,
    .name = "openblas",
    .summary = "OpenBLAS sgemm and dgemm, bias and activation on what it leaves in the cache",
    .dtypes = {float32, float64},
    .prepare = prepare_product_openblas,
    .supports = supports_product_openblas,
    .libraries = "openblas"};

// Fastest first, reference last. The order is the priority.
inline constexpr KernelSpec table[] = {
    product_row<small_product>(),
    product_row<skinny_product>(),
    product_row<amx_product>(),
    product_row<int8_product, Directions::forward>(),
    product_row<packed_product>(),
    product_row<onednn_product>(),
    product_row<openblas_product>(),
    taking(affine_names, with_backward({products, "reference", "any dtype and layout, one loop", any_dtype,
                                        prepare_product_reference, nullptr, workspace_product_reference})),
    {.ops = convs,
     .name = "onednn",
     .summary = "oneDNN in its own layouts: AVX-512 and AMX",
     .dtypes = {float32, bfloat16},
     .prepare = prepare_conv_onednn,
     .supports = supports_conv_onednn,
     .workspace_bytes = workspace_conv_onednn,
     .directions = Directions::both,
     .needs = "a build with oneDNN",
     .libraries = "onednn"},
    {convs, "depthwise", "one input channel per group: vectors along rows", fast_floats, prepare_conv_depthwise,
     supports_conv_depthwise, workspace_conv_depthwise},
    {convs, "direct", "sums in registers, no matrix of columns: most shapes", fast_floats, prepare_conv_direct,
     supports_conv_direct, workspace_conv_direct},
    {conv2d, "winograd", "3x3 filters with stride 1: large images, not too many channels", fast_floats,
     prepare_conv_winograd, supports_conv_winograd, workspace_conv_winograd},
    with_backward({convs, "im2col", "tiles of columns times the weight as a matrix product", fast_floats,
                   prepare_conv_im2col, supports_conv_im2col, workspace_conv_im2col}),
    with_backward({convs, "reference", exact, any_dtype, prepare_conv_reference}),
    taking("lengths|page_table|causal_align|lse",
           by_class(attention_of_any_length,
                    {attention, "single_query", "up to 4 queries, as in decoding: keys and values are read once",
                     fast_floats, prepare_attention_single_query, supports_attention_single_query,
                     workspace_attention_single_query})),
    {.ops = attention,
     .name = "tiled_amx",
     .summary = "AMX tiles, the softmax in blocks of keys",
     .dtypes = bfloat16,
     .prepare = prepare_attention_tiled_amx,
     .supports = supports_attention_tiled_amx,
     .workspace_bytes = workspace_attention_tiled_amx,
     .outputs = fast_floats,
     .needs = "a CPU with AMX",
     .takes = "lengths|causal_align|lse"},
    taking("lengths|causal_align|lse",
           {attention, "tiled", "the softmax in blocks of keys: little memory, any length", fast_floats,
            prepare_attention_tiled, supports_attention_tiled, workspace_attention_tiled}),
    {attention, "composed", "matrix product, softmax, matrix product over whole rows", fast_floats,
     prepare_attention_composed, supports_attention_composed, workspace_attention_composed},
    taking("lengths|page_table|causal_align|lse",
           by_class(attention_of_any_length, {attention, "reference", exact, any_dtype, prepare_attention_reference})),
    {pools, "simd", "one dim after the other, in vectors", fast_floats, prepare_pool_simd, supports_pool_simd,
     workspace_pool_simd},
    {pools, "reference", exact, any_dtype, prepare_pool_reference},
    {batch_norms, "simd", "planes or channels last: vectors along either", fast_floats, prepare_batch_norm_simd,
     supports_batch_norm_simd, workspace_batch_norm_simd},
    {batch_norms, "reference", exact, any_dtype, prepare_batch_norm_reference},
    by_class(layer_norm_of_any_rows,
             with_backward({row_norms, "simd", "two passes over a row in cache", fast_floats, prepare_layer_norm_simd,
                            supports_layer_norm_simd, workspace_layer_norm_simd})),
    with_backward({row_norms, "reference", exact, any_dtype, prepare_layer_norm_reference, nullptr,
                   workspace_layer_norm_reference}),
    {normalize, "simd", "p of 0, 1, 2 or infinity, any axis", fast_floats, prepare_normalize_simd,
     supports_normalize_simd},
    {normalize, "reference", exact, any_dtype, prepare_normalize_reference},
    with_backward({softmaxes, "simd", "any axis: rows, or vectors across columns", fast_floats, prepare_softmax_simd,
                   supports_softmax_simd, workspace_softmax_simd}),
    with_backward({softmaxes, "reference", exact, any_dtype, prepare_softmax_reference}),
    {dropout, "simd", "random words made in vectors", fast_floats, prepare_dropout_simd},
    {dropout, "reference", "any float dtype and layout, one random word at a time", any_dtype,
     prepare_dropout_reference},
    with_backward({activations, "simd", vectors, fast_floats, prepare_unary_simd}),
    with_backward({activations, "reference", exact, any_dtype, prepare_unary_reference}),
    {functions, "simd", vectors, fast_floats, prepare_unary_simd},
    {functions, "reference", exact, any_dtype, prepare_unary_reference},
    {{add, sub},
     "simd",
     vectors,
     fast_floats | DataTypeSet{int64, int32, int8, uint8},
     prepare_binary_simd,
     supports_binary_simd},
    {mul, "simd", vectors, fast_floats | DataTypeSet{int32}, prepare_binary_simd, supports_binary_simd},
    {div, "simd", vectors, fast_floats, prepare_binary_simd, supports_binary_simd},
    {{add, sub, mul, div}, "reference", exact, any_dtype, prepare_binary_reference},
    reduce_simd,
    reduce_reference,
    {embedding, "rows", "copies or casts whole rows of the table", any_dtype, prepare_embedding_rows,
     supports_embedding_rows},
    {embedding, "reference", "any dtype and layout", any_dtype, prepare_embedding_reference},
    with_backward({.ops = class_losses,
                   .name = "simd",
                   .summary = "one pass over the scores, or those of the targets alone",
                   .dtypes = fast_floats,
                   .prepare = prepare_class_loss_simd,
                   .supports = supports_class_loss_simd,
                   .workspace_bytes = workspace_class_loss_simd,
                   .outputs = floats}),
    with_backward({class_losses, "reference", exact, any_dtype, prepare_class_loss_reference}),
    {pointwise_losses, "simd", "one shape: one pass, sums in fixed chunks", fast_floats, prepare_pointwise_loss_simd,
     supports_pointwise_loss_simd, workspace_pointwise_loss_simd},
    {pointwise_losses, "reference", exact, any_dtype, prepare_pointwise_loss_reference},
    {cast, "simd", "vectors: between f32, f16, bf16 and from and to bytes and i32",
     fast_floats | DataTypeSet{int32, int8, uint8, boolean}, prepare_cast_simd, supports_cast_simd},
    {cast, "reference", "exact, ties to even, any pair of dtypes", any_dtype, prepare_unary_reference},
    {.ops = {copy, transpose},
     .name = "blocked",
     .summary = "whole rows, or tiles transposed in vectors where the layouts differ",
     .prepare = prepare_copy_bytes,
     .supports = supports_copy_bytes,
     .any_alignment = true},
    {.ops = concat,
     .name = "rows",
     .summary = "whole rows of inputs of one dtype",
     .prepare = prepare_concat_rows,
     .supports = supports_copy_bytes,
     .any_alignment = true},
    {.ops = slice,
     .name = "rows",
     .summary = "whole rows of what is kept",
     .prepare = prepare_copy_bytes,
     .supports = supports_copy_bytes,
     .any_alignment = true},
    {{copy, transpose, slice}, "reference", moved, any_dtype, prepare_copy_reference},
    {concat, "reference", moved, any_dtype, prepare_concat_reference},
    {.ops = unscale,
     .name = "simd",
     .summary = "gradients of any layout to f32, in one pass",
     .dtypes = fast_floats,
     .prepare = prepare_unscale_simd,
     .supports = supports_unscale_simd,
     .outputs = any_dtype},
    {unscale, "reference", exact, any_dtype, prepare_unscale_reference},
    by_class(layer_norm_of_any_rows, {add_rms_norm, "simd", "the sum is normalised while it is in cache", fast_floats,
                                      prepare_layer_norm_simd, supports_layer_norm_simd, workspace_layer_norm_simd}),
    {add_rms_norm, "reference", exact, any_dtype, prepare_layer_norm_reference},
    {silu_mul, "simd", vectors, fast_floats, prepare_silu_mul_simd},
    {silu_mul, "reference", exact, any_dtype, prepare_silu_mul_reference},
    {rope, "simd", "heads in line: a token's angles are read once", fast_floats, prepare_rope_simd, supports_rope_simd},
    {rope, "reference", exact, any_dtype, prepare_rope_reference},
    {kv_append, "rows", "whole heads of tokens of the caches' dtype", any_dtype, prepare_kv_append_rows,
     supports_kv_append_rows},
    {kv_append, "reference", moved, any_dtype, prepare_kv_append_reference},
};

}  // namespace xpuruntime::cpu
