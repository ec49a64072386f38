#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family.

namespace xpuruntime::cpu {

// copy transpose slice
std::unique_ptr<const Plan> prepare_copy_reference(const Problem& problem, const PrepareContext& context);
/// Takes what needs no conversion: every input has the output's dtype. Concat's too.
Verdict supports_copy_bytes(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_copy_bytes(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_concat_reference(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_concat_rows(const Problem& problem, const PrepareContext& context);

std::unique_ptr<const Plan> prepare_embedding_reference(const Problem& problem, const PrepareContext& context);
Verdict supports_embedding_rows(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_embedding_rows(const Problem& problem, const PrepareContext& context);

}  // namespace xpuruntime::cpu
