#pragma once

#include <string>

#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {

/// Runs a kernel once on random inputs and compares its numbers with the reference. Returns what is wrong; empty:
/// nothing, also where there is no reference to compare with.
std::string flaw_of_kernel(const KernelRegistry& registry, const Problem& problem, const std::string& kernel);

}  // namespace xpuruntime
