#pragma once

#include <type_traits>

#include "backends/cpu/base/stages.h"

// The gradients of a product are products: of the output's gradient and the other operand, one of them transposed. So
// a kernel that multiplies forward serves backward too, under its own name.

namespace xpuruntime::cpu {

Verdict supports_product_backward(const KernelFunctions& kernel, const Problem& problem, const DeviceProfile& profile);
bool prefers_product_backward(const KernelFunctions& kernel, const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_backward(const KernelFunctions& kernel, const Problem& problem,
                                         const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_backward(const KernelFunctions& kernel, const Problem& problem,
                                                     const PrepareContext& context);

/// The row of a kernel of products, from the functions for forward problems.
template <auto supports, auto prepare, auto workspace, auto prefers>
struct ProductRow {
  static constexpr KernelFunctions kernel = {supports, prepare, workspace, prefers};
  static constexpr bool forward(const Problem& problem) { return problem.direction == Direction::forward; }

  static Verdict supports_it(const Problem& problem, const DeviceProfile& profile) {
    return forward(problem) ? supports(problem, profile) : supports_product_backward(kernel, problem, profile);
  }
  static std::unique_ptr<const Plan> prepare_it(const Problem& problem, const PrepareContext& context) {
    return forward(problem) ? prepare(problem, context) : prepare_product_backward(kernel, problem, context);
  }
  static std::uint64_t workspace_it(const Problem& problem, const DeviceProfile& profile) {
    if (!forward(problem)) return workspace_product_backward(kernel, problem, profile);
    if constexpr (!std::is_null_pointer_v<decltype(workspace)>) return workspace(problem, profile);
    return 0;
  }
  static bool prefers_it(const Problem& problem, const DeviceProfile& profile) {
    if (!forward(problem)) return prefers_product_backward(kernel, problem, profile);
    if constexpr (!std::is_null_pointer_v<decltype(prefers)>) return prefers(problem, profile);
    return false;
  }
};

template <auto supports, auto prepare, auto workspace = nullptr, auto prefers = nullptr>
constexpr KernelSpec product_row(OpId op, std::string_view name) {
  using Row = ProductRow<supports, prepare, workspace, prefers>;
  return with_backward({op, name, Row::supports_it, Row::prepare_it, Row::workspace_it, Row::prefers_it});
}

}  // namespace xpuruntime::cpu
