#pragma once

#include "backends/cpu/matmul/affine.h"
#include "core/matmul_shape.h"

// The gradients of a product are products: of the output's gradient and the other operand, one of them transposed. So
// a kernel that multiplies forward serves backward too, under its own name.

namespace xpuruntime::cpu {

Verdict supports_product_backward(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_backward(const KernelSpec& kernel, const Problem& problem,
                                         const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_backward(const KernelSpec& kernel, const Problem& problem,
                                                     const PrepareContext& context);

/// The row of a kernel of products, from the one for plain forward problems.
template <const KernelSpec& plain, Directions directions = Directions::both>
constexpr KernelSpec product_row() {
  KernelSpec row = taking(affine_names, plain);
  row.directions = directions;
  row.outputs = any_dtype;  // what is made of the plain product's
  row.prepare = [](const Problem& problem, const PrepareContext& context) {
    if (is_affine(problem)) return prepare_product_affine(plain, problem, context);
    if (problem.direction == Direction::backward) return prepare_product_backward(plain, problem, context);
    return plain.prepare(problem, context);
  };
  row.supports = [](const Problem& problem, const DeviceProfile& profile) {
    if (is_affine(problem)) return supports_product_affine(plain, problem, profile);
    if (problem.direction == Direction::backward) return supports_product_backward(plain, problem, profile);
    return plain.accepts(problem, profile);
  };
  row.workspace_bytes = [](const Problem& problem, const DeviceProfile& profile) -> std::uint64_t {
    if (is_affine(problem)) return workspace_product_affine(plain, problem, profile);
    if (problem.direction == Direction::backward) return workspace_product_backward(plain, problem, profile);
    return plain.workspace_bytes == nullptr ? 0 : plain.workspace_bytes(problem, profile);
  };
  return row;
}

}  // namespace xpuruntime::cpu
