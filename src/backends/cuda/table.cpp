#include "backends/cuda/table.h"

#include "backends/cuda/kernels.h"

namespace xpuruntime::cuda {
namespace {

constexpr KernelSpec table[] = {
    {OpId::matmul, "skinny", supports_skinny, prepare_skinny, nullptr, prefers_skinny},
    {.op = OpId::matmul,
     .name = "cublasLt",
     .supports = supports_cublaslt,
     .prepare = prepare_cublaslt,
     .workspace_bytes = cublaslt_workspace_bytes,
     .prefers = prefers_cublaslt,
     .variants = cublaslt_variants,
     .prepare_variant = prepare_cublaslt_variant},
    {OpId::matmul, "reference", supports_reference, prepare_reference},
    {OpId::add, "elementwise", supports_add, prepare_add},
    {OpId::cast, "elementwise", supports_cast, prepare_cast},
};

}  // namespace

std::span<const KernelSpec> kernel_table() { return table; }

}  // namespace xpuruntime::cuda
