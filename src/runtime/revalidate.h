#pragma once

#include <string>

#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {

/// Runs a kernel once on random inputs, in a child process first if it is not ours, and compares its numbers with the
/// reference. Returns what is wrong, or that they could not be compared; empty: nothing.
std::string flaw_of_kernel(const KernelRegistry& registry, const Problem& problem, const std::string& kernel,
                           const std::string& plan);

}  // namespace xpuruntime
