#pragma once

#include "backends/cpu/base/rows.h"
#include "core/matmul_shape.h"

// The rows of this family in the CPU's table, and their functions.

namespace xpuruntime::cpu {

/// What the references do with backward problems.
std::unique_ptr<const Plan> prepare_product_backward_reference(const Problem& problem);

// Each takes matmul and linear alike.
SupportsFunction supports_product_openblas, supports_product_packed, supports_product_skinny, supports_product_small,
    supports_product_int8, supports_product_amx;
WorkspaceFunction workspace_product_reference, workspace_product_packed, workspace_product_skinny,
    workspace_product_small, workspace_product_int8, workspace_product_amx;
PrepareFunction prepare_product_reference, prepare_product_openblas, prepare_product_packed, prepare_product_skinny,
    prepare_product_small, prepare_product_int8, prepare_product_amx;

// alpha * (a * scale_a) @ (b * scale_b) + beta * c. A kernel multiplies a by b as always; the sums are scaled, and c is
// added, as they go to the output. So each kernel of products takes all of this under its own name.

/// Whether a forward problem is more than a product.
inline bool is_affine(const Problem& problem) {
  return problem.direction == Direction::forward && !opt_ins_of(problem).empty();
}

Verdict supports_product_affine(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_affine(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_affine(const KernelSpec& kernel, const Problem& problem,
                                                   const PrepareContext& context);

// The gradients of a product are products: of the output's gradient and the other operand, one of them transposed. So
// a kernel that multiplies forward serves backward too, under its own name.

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

// By their forward rows.
inline constexpr KernelSpec small_product = {product_ops,
                                             "small",
                                             "our tiles without packing: extents up to 64, batches of them",
                                             fast_floats,
                                             prepare_product_small,
                                             supports_product_small,
                                             workspace_product_small};
inline constexpr KernelSpec skinny_product = {product_ops,
                                              "skinny",
                                              "up to 8 rows or columns: bound by memory, as in decoding",
                                              fast_floats,
                                              prepare_product_skinny,
                                              supports_product_skinny,
                                              workspace_product_skinny};
inline constexpr KernelSpec amx_product = {.ops = product_ops,
                                           .name = "amx",
                                           .summary = "AMX tiles, the smaller operand packed in each call",
                                           .dtypes = DataType::bfloat16,
                                           .prepare = prepare_product_amx,
                                           .supports = supports_product_amx,
                                           .workspace_bytes = workspace_product_amx,
                                           .outputs = fast_floats,
                                           .needs = "a CPU with AMX"};
inline constexpr KernelSpec int8_product = {.ops = product_ops,
                                            .name = "int8",
                                            .summary = "exact, with VNNI or dot product where there is one",
                                            .dtypes = {DataType::int8, DataType::uint8},
                                            .prepare = prepare_product_int8,
                                            .supports = supports_product_int8,
                                            .workspace_bytes = workspace_product_int8,
                                            .outputs = DataType::int32};
inline constexpr KernelSpec packed_product = {product_ops,
                                              "packed",
                                              "our own blocked product: any layout",
                                              fast_floats,
                                              prepare_product_packed,
                                              supports_product_packed,
                                              workspace_product_packed};
inline constexpr KernelSpec openblas_product = {
    .ops = product_ops,
    .name = "openblas",
    .summary = "OpenBLAS sgemm and dgemm, bias and activation on what it leaves in the cache",
    .dtypes = {DataType::float32, DataType::float64},
    .prepare = prepare_product_openblas,
    .supports = supports_product_openblas,
    .libraries = "openblas"};

inline constexpr KernelSpec product_rows[] = {
    product_row<small_product>(),  product_row<skinny_product>(),
    product_row<amx_product>(),    product_row<int8_product, Directions::forward>(),
    product_row<packed_product>(),
};
inline constexpr KernelSpec product_rows_after_onednn[] = {
    product_row<openblas_product>(),
    taking(affine_names, with_backward({product_ops, "reference", "any dtype and layout, one loop", any_dtype,
                                        prepare_product_reference, nullptr, workspace_product_reference})),
};

}  // namespace xpuruntime::cpu
