#pragma once

namespace xpuruntime::opencl {

// The files of kernels/, put into the library by embed.cmake.
extern const char common_cl[];
extern const char cast_cl[];
extern const char elementwise_cl[];
extern const char matmul_direct_cl[];
extern const char matmul_tiled_cl[];
extern const char movement_cl[];

}  // namespace xpuruntime::opencl
