#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family.

namespace xpuruntime::cpu {

/// Names the class of problems that differ in the number of keys and what follows from it: how keys, values and mask
/// lie, or how many pages a sequence has.
std::optional<Problem> attention_of_any_length(const Problem& problem);

std::unique_ptr<const Plan> prepare_attention_reference(const Problem& problem, const PrepareContext& context);

Verdict supports_attention_composed(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_attention_composed(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_attention_composed(const Problem& problem, const DeviceProfile& profile);

Verdict supports_attention_tiled(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_attention_tiled(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_attention_tiled(const Problem& problem, const DeviceProfile& profile);

Verdict supports_attention_tiled_amx(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_attention_tiled_amx(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_attention_tiled_amx(const Problem& problem, const DeviceProfile& profile);

Verdict supports_attention_single_query(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_attention_single_query(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_attention_single_query(const Problem& problem, const DeviceProfile& profile);

}  // namespace xpuruntime::cpu
