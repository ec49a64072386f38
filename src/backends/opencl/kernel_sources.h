#pragma once

namespace xpuruntime::opencl {

// The files of kernels/, put into the library by embed.cmake.
extern const char arg_cl[];
extern const char arrange_cl[];
extern const char attention_cl[];
extern const char attention_block_cl[];
extern const char attention_direct_cl[];
extern const char attention_few_cl[];
extern const char attention_gpu_cl[];
extern const char attention_join_cl[];
extern const char attention_tiled_cl[];
extern const char batch_norm_cl[];
extern const char cast_cl[];
extern const char class_loss_cl[];
extern const char common_cl[];
extern const char conv_cl[];
extern const char conv_columns_cl[];
extern const char conv_direct_cl[];
extern const char conv_tiled_cl[];
extern const char conv_winograd_cl[];
extern const char elementwise_cl[];
extern const char lines_cl[];
extern const char loss_total_cl[];
extern const char matmul_direct_cl[];
extern const char matmul_rows_cl[];
extern const char matmul_split_cl[];
extern const char movement_cl[];
extern const char norm_cl[];
extern const char parts_cl[];
extern const char pointwise_cl[];
extern const char pointwise_loss_cl[];
extern const char pool_cl[];
extern const char product_block_cl[];
extern const char product_cl[];
extern const char product_tiled_cl[];
extern const char reals_cl[];
extern const char reduce_cl[];
extern const char softmax_cl[];
extern const char vectors_cl[];
extern const char where_cl[];

}  // namespace xpuruntime::opencl
