#pragma once

#include <string>

#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/runtime/runtime.h"

// What runtime.cpp calls in other files.

namespace xpuruntime {

/// Adds the backends that come with the library. One that cannot be opened is absent, with the reason; never an error.
void add_builtin_backends(KernelRegistry& registry, const RuntimeOptions& options);

/// How many threads the CPU's kernels use where nothing else is said.
int threads_of_the_cpu();

/// Runs a kernel once on random inputs, in a child process first if it is not ours, and compares its numbers with the
/// reference. Returns what is wrong, or that they could not be compared; empty: nothing.
std::string flaw_of_kernel(const KernelRegistry& registry, const Problem& problem, const std::string& kernel,
                           const std::string& plan);

/// Whether XPURUNTIME_TUNE is on: the process's store is then to be written.
bool tuning_is_asked_for();

/// What the environment asks of the process's runtime, for people who cannot change the program: XPURUNTIME_POLICY,
/// _LOCK, _TUNE, _VERBOSE and _TRACE; docs/environment.md. A value that makes no sense is an error.
void apply_environment(Runtime& runtime);

}  // namespace xpuruntime
