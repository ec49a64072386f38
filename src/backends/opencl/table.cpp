#include "backends/opencl/backend.h"
#include "backends/opencl/kernels.h"

namespace xpuruntime::opencl {
namespace {

constexpr KernelSpec table[] = {
    {.op = OpId::matmul,
     .name = "MATMUL_TILED_LOCAL",
     .supports = supports_matmul_tiled,
     .prepare = prepare_matmul_tiled,
     .prefers = prefers_matmul_tiled,
     .variants = matmul_tiled_variants,
     .prepare_variant = prepare_matmul_tiled_variant},
    {.op = OpId::matmul, .name = "MATMUL_DIRECT", .supports = supports_matmul_direct, .prepare = prepare_matmul_direct},
    {.op = OpId::add, .name = "ADD_DIRECT", .supports = supports_elementwise, .prepare = prepare_add},
    {.op = OpId::cast, .name = "CAST_DIRECT", .supports = supports_elementwise, .prepare = prepare_cast},
};

}  // namespace

std::span<const KernelSpec> kernel_table() { return table; }

}  // namespace xpuruntime::opencl
