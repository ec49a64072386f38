#pragma once

#include <string>
#include <vector>

#include "cli/model_commands.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime::cli {

/// Which engine runs a model under the policy in force, and the decisions of its calls.
KernelLock record_model(Context& context, const std::string& path, const ModelOptions& options, std::uint64_t seed);

/// The calls of a model by native.
struct ModelCalls {
  std::vector<Problem> problems = {};  // in the order of its nodes; some may be the same
  std::string why_none = {};           // why another engine is to run the model; empty: native does
};
/// Under the policy in force. An error where no engine takes the model.
ModelCalls calls_of_model(Context& context, const std::string& path, const ModelOptions& options);

/// Whether a lock holds for the engine and all calls of a model here: what it lacks for them, or if it lacks nothing
/// how its entries for them fare. Its other entries are not looked at.
ReplayReport verify_model(Context& context, const std::string& path, const ModelOptions& options,
                          const KernelLock& lock, LockMode mode);

}  // namespace xpuruntime::cli
