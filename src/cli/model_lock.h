#pragma once

#include <string>
#include <vector>

#include "cli/model_commands.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime::cli {

/// Which engine runs a model under the policy in force, and the decisions of its calls.
KernelLock record_model(Context& context, const std::string& path, const ModelOptions& options, std::uint64_t seed);

/// The problems of a model's calls in the order of its nodes, under the policy in force. Some may be the same.
std::vector<Problem> problems_of_model(Context& context, const std::string& path, const ModelOptions& options);

/// Whether a lock holds for the engine and all calls of a model here: what it lacks for them, or if it lacks nothing
/// how its entries for them fare. Its other entries are not looked at.
ReplayReport verify_model(Context& context, const std::string& path, const ModelOptions& options,
                          const KernelLock& lock, LockMode mode);

}  // namespace xpuruntime::cli
