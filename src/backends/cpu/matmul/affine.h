#pragma once

#include "xpuruntime/registry/kernel.h"

// alpha * (a * scale_a) @ (b * scale_b) + beta * c. A kernel multiplies a by b as always; the sums are scaled, and c is
// added, as they go to the output. So each kernel of products takes all of this under its own name.

namespace xpuruntime::cpu {

/// Whether a forward problem is more than a product.
inline bool is_affine(const Problem& problem) {
  return problem.direction == Direction::forward && !opt_ins_of(problem).empty();
}

Verdict supports_product_affine(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_affine(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_affine(const KernelSpec& kernel, const Problem& problem,
                                                   const PrepareContext& context);

}  // namespace xpuruntime::cpu
