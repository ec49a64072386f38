#include "backends/cuda/table.h"

#include "backends/cuda/kernels.h"

namespace xpuruntime::cuda {
namespace {

constexpr KernelSpec table[] = {
    {OpId::matmul, "skinny", supports_skinny, prepare_skinny, nullptr, prefers_skinny},
    {OpId::matmul, "cublasLt", supports_cublaslt, prepare_cublaslt, cublaslt_workspace_bytes, prefers_cublaslt},
    {OpId::matmul, "reference", supports_reference, prepare_reference},
    {OpId::add, "elementwise", supports_add, prepare_add},
    {OpId::cast, "elementwise", supports_cast, prepare_cast},
};

}  // namespace

std::span<const KernelSpec> kernel_table() { return table; }

}  // namespace xpuruntime::cuda
