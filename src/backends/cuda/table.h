#pragma once

#include "backends/cuda/kernels.h"
#include "core/matmul_shape.h"

// Needs no toolkit: the catalogue reads these rows in every build.

namespace xpuruntime::cuda {

inline constexpr DataTypeSet numbers =
    floats | DataTypeSet{DataType::int64, DataType::int32, DataType::int16, DataType::int8, DataType::uint8};
inline constexpr DataTypeSet product_dtypes = floats | DataTypeSet{DataType::int8};

inline constexpr std::string_view any_layout = "any layout, vector loads where contiguous";
inline constexpr std::string_view one_by_one = "any dtypes and layout, computed in f64 or 64-bit integers";

// Functions of one element or two.
inline constexpr OpList float_functions = {
    OpId::floor,    OpId::ceil,       OpId::round, OpId::reciprocal, OpId::erf,          OpId::sin,       OpId::cos,
    OpId::softplus, OpId::leaky_relu, OpId::prelu, OpId::elu,        OpId::hard_sigmoid, OpId::hard_swish};
inline constexpr OpList number_functions =
    extreme_ops | OpList{OpId::abs, OpId::neg, OpId::sign, OpId::clip, OpId::pow, OpId::remainder, OpId::fmod};
inline constexpr OpList bit_functions =
    bitwise_ops | logical_ops |
    OpList{OpId::bitwise_not, OpId::logical_not, OpId::shift_left, OpId::shift_right, OpId::trunc_div};
inline constexpr OpList float_tests = {OpId::isnan, OpId::isinf};
inline constexpr OpList arithmetic = {OpId::add, OpId::sub, OpId::mul, OpId::div};
inline constexpr DataTypeSet vector_integers = {DataType::int64, DataType::int32, DataType::int8, DataType::uint8};

constexpr KernelSpec by_vectors(OpList ops, DataTypeSet dtypes, DataTypeSet outputs = {}) {
  return {.ops = ops,
          .name = "elementwise",
          .summary = any_layout,
          .dtypes = dtypes,
          .prepare = prepare_pointwise,
          .supports = supports_pointwise,
          .outputs = outputs};
}
constexpr KernelSpec by_reference(OpList ops) {
  return {ops, "reference", one_by_one, any_dtype, prepare_pointwise_reference, supports_any};
}

/// Every kernel of this backend, fastest first, reference last.
inline constexpr KernelSpec table[] = {
    {.ops = product_ops,
     .name = "skinny",
     .summary = "few rows (up to 64, f32 up to 16): bound by memory, as in decoding",
     .dtypes = fast_floats,
     .prepare = prepare_skinny,
     .supports = supports_skinny,
     .variants = skinny_variants,
     .prepare_variant = prepare_skinny_variant,
     .takes = "alpha|beta|c"},
    {.ops = product_ops,
     .name = "cublasLt",
     .summary = "cuBLASLt with a chosen algorithm: tensor cores, most sizes",
     .dtypes = product_dtypes,
     .prepare = prepare_cublaslt,
     .supports = supports_cublaslt,
     .workspace_bytes = cublaslt_workspace_bytes,
     .outputs = product_dtypes | DataTypeSet{DataType::int32},
     .needs = "an NVIDIA GPU and libcublasLt",
     .libraries = "cublasLt",
     .variants = cublaslt_variants,
     .prepare_variant = prepare_cublaslt_variant,
     .takes = affine_names},
    {.ops = product_ops,
     .name = "cublas",
     .summary = "classic cuBLAS: plain products by its own choice of algorithm",
     .dtypes = fast_floats | DataTypeSet{DataType::float64, DataType::tfloat32, DataType::int8},
     .prepare = prepare_cublas,
     .supports = supports_cublas,
     .workspace_bytes = cublas_workspace_bytes,
     .outputs = fast_floats | DataTypeSet{DataType::float64, DataType::tfloat32, DataType::int32},
     .needs = "an NVIDIA GPU and libcublas",
     .libraries = "cublas",
     .takes = "alpha"},
    {.ops = product_ops,
     .name = "cutlass",
     .summary = "CUTLASS on Hopper: 16-bit products by tiles to choose from, few tiles with a long k shared by blocks",
     .dtypes = DataTypeSet{DataType::float16, DataType::bfloat16},
     .prepare = prepare_cutlass,
     .supports = supports_cutlass,
     .workspace_bytes = cutlass_workspace_bytes,
     .needs = "an NVIDIA GPU of compute capability 9.0, and CUTLASS at build time",
     .variants = cutlass_variants,
     .prepare_variant = prepare_cutlass_variant,
     .takes = "alpha|beta|c"},
    taking(affine_names, {product_ops, "reference", "any numbers and layout, one thread per output", numbers,
                          prepare_reference, supports_any}),
    {row_norm_ops | softmax_ops | OpList{OpId::add_rms_norm, OpId::normalize}, "rows",
     "the last dim: a group of lanes, a warp or a block a row, read once where registers hold it", fast_floats,
     prepare_rows, supports_rows},
    {OpId::cross_entropy, "rows", "classes in the last dim: one pass over the scores", fast_floats,
     prepare_cross_entropy, supports_cross_entropy, cross_entropy_workspace_bytes},
    {OpId::nll_loss, "elementwise", "any layout, the scores of the targets alone", fast_floats, prepare_nll_loss,
     supports_nll_loss, nll_loss_workspace_bytes},
    {pointwise_loss_ops, "elementwise", "any layout, vector loads where contiguous", fast_floats,
     prepare_pointwise_loss, supports_pointwise_loss, pointwise_loss_workspace_bytes},
    {reduce_ops, "reduce", "neighbouring dims, in parts where there are few results", fast_floats, prepare_reduce,
     supports_reduce, reduce_workspace_bytes},
    {{OpId::add, OpId::sub, OpId::mul},
     "elementwise",
     any_layout,
     fast_floats | DataTypeSet{DataType::float64, DataType::int64, DataType::int32, DataType::int8, DataType::uint8},
     prepare_elementwise,
     supports_elementwise},
    {OpId::div, "elementwise", any_layout, fast_floats | DataTypeSet{DataType::float64}, prepare_elementwise,
     supports_elementwise},
    {activation_ops | function_ops | OpList{OpId::silu_mul}, "elementwise", any_layout, fast_floats,
     prepare_elementwise, supports_elementwise},
    by_reference(arithmetic | activation_ops),
    by_reference(function_ops),
    by_vectors(float_functions, fast_floats),
    by_reference(float_functions),
    by_vectors(library_ops, fast_floats),
    by_reference(library_ops),
    by_vectors(number_functions, fast_floats | vector_integers),
    by_reference(number_functions),
    by_vectors(bit_functions, vector_integers | DataTypeSet{DataType::boolean}),
    by_reference(bit_functions),
    by_vectors(float_tests, fast_floats, DataTypeSet{DataType::boolean}),
    by_reference(float_tests),
    by_vectors(comparison_ops, pointwise_dtypes, DataTypeSet{DataType::boolean}),
    by_reference(comparison_ops),
    {OpId::where, "elementwise", "inputs of one dtype, any layout, vector loads where contiguous", any_dtype,
     prepare_where, supports_where},
    {OpId::where, "reference", "from one dtype to another", any_dtype, prepare_where_reference, supports_any},
    {OpId::cast, "elementwise", "any pair of dtypes, exact, ties to even", any_dtype, prepare_cast, supports_any},
    {OpId::dropout, "elementwise", "any layout, the mask of every device", fast_floats, prepare_dropout,
     supports_dropout},
    {.ops = OpId::unscale,
     .name = "elementwise",
     .summary = "any layout, vector loads where contiguous",
     .dtypes = fast_floats,
     .prepare = prepare_unscale,
     .supports = supports_any,
     .outputs = DataTypeSet{DataType::float32}},
    {{OpId::copy, OpId::transpose, OpId::slice, OpId::concat, OpId::flip},
     "copy",
     "any layout of one dtype, tiles where the layouts cross",
     any_dtype,
     prepare_copy,
     supports_copy},
    {{OpId::pad, OpId::tile, OpId::trilu},
     "copy",
     "any layout of one dtype, vectors where rows allow",
     any_dtype,
     prepare_arranged,
     supports_moved},
    {OpId::embedding, "rows", "copies whole rows of the table", any_dtype, prepare_embedding, supports_embedding},
    {{OpId::gather, OpId::gather_elements, OpId::gather_nd},
     "rows",
     "elements, or slices by vectors, in any layout of one dtype",
     any_dtype,
     prepare_gather,
     supports_moved},
    {.ops = {OpId::arg_max, OpId::arg_min},
     .name = "reduce",
     .summary = "any layout, a thread or a block a line",
     .dtypes = any_dtype,
     .prepare = prepare_arg,
     .supports = supports_any,
     .outputs = DataTypeSet{DataType::int64, DataType::int32}},
    {OpId::rope, "elementwise", "any layout, vector loads where heads are contiguous", fast_floats, prepare_rope,
     supports_rope},
    {OpId::kv_append, "copy", "tokens of the caches' dtype, any layout; copies caches that are not outputs", any_dtype,
     prepare_kv_append, supports_kv_append},
};

/// Names that policies know and no kernel has yet.
inline constexpr KernelSpec planned[] = {
    {OpId::attention, "torch", "PyTorch's own attention"},
    {OpId::attention, "flash_v2", "FlashAttention 2: long sequences in little memory"},
    {OpId::attention, "xformers", "xFormers: many attention patterns"},
    {OpId::conv2d, "cudnn", "cuDNN, algorithm chosen by its heuristics"},
    {OpId::conv2d, "cudnn_implicit_gemm", "cuDNN as an implicit matrix product"},
    {OpId::conv2d, "cudnn_winograd", "cuDNN Winograd for small filters"},
};

}  // namespace xpuruntime::cuda
