#pragma once

#include "xpuruntime/registry/kernel.h"

// What the rows of table.h point to.

namespace xpuruntime::cuda {

/// Of functions of one element or two that are computed 16 bytes at a time.
inline constexpr DataTypeSet pointwise_dtypes =
    fast_floats | DataTypeSet{DataType::int64, DataType::int32, DataType::int8, DataType::uint8, DataType::boolean};

SupportsFunction supports_skinny, supports_cublaslt, supports_cublas, supports_cutlass;
WorkspaceFunction cublaslt_workspace_bytes, cublas_workspace_bytes, cutlass_workspace_bytes;
PrepareFunction prepare_skinny, prepare_cublaslt, prepare_cublas, prepare_cutlass;
VariantsFunction skinny_variants, cublaslt_variants, cutlass_variants;
PrepareVariantFunction prepare_skinny_variant, prepare_cublaslt_variant, prepare_cutlass_variant;

/// All that their rows let through, where this build has code for the device.
SupportsFunction supports_any;
/// The first input and the output are of one dtype; what else there is may be f32 instead.
SupportsFunction has_one_dtype;
PrepareFunction prepare_reference, prepare_cast, prepare_unscale;

SupportsFunction supports_elementwise, supports_pointwise, supports_where, supports_dropout, supports_copy,
    supports_embedding, supports_moved, supports_rope, supports_kv_append, supports_rows, supports_cross_entropy,
    supports_nll_loss, supports_pointwise_loss, supports_reduce;
WorkspaceFunction cross_entropy_workspace_bytes, nll_loss_workspace_bytes, pointwise_loss_workspace_bytes,
    reduce_workspace_bytes;
PrepareFunction prepare_elementwise, prepare_pointwise, prepare_pointwise_reference, prepare_where,
    prepare_where_reference, prepare_dropout, prepare_copy, prepare_embedding, prepare_gather, prepare_arranged,
    prepare_arg, prepare_rope, prepare_kv_append, prepare_rows, prepare_cross_entropy, prepare_nll_loss,
    prepare_pointwise_loss, prepare_reduce;

}  // namespace xpuruntime::cuda
