#pragma once

#include <string>
#include <vector>

#include "graph/session/pick_engine.h"
#include "xpuruntime/select/lock.h"

// What a lock says of the engine of a model.

namespace xpuruntime {

/// How locks call a model.
std::string name_in_lock(const Model& model);

/// A model that this engine runs, as a lock has it.
LockedEngine locked_engine(const Model& model, const ExecutionPolicy& execution, const SessionRecord& record);

/// Why an engine here (null: there is none) is not that of a lock; empty: it is.
std::string why_other_engine(const KernelLock& lock, const LockedEngine& locked, const Engine* engine,
                             const DeviceManager& devices, LockMode mode);

/// The one that a lock names for the request's model, alone, with the request made fit for it. A lock without engines
/// is one of native's kernels. What is not as in the lock is an error that names it.
using ReplayedEngine = std::pair<std::vector<std::shared_ptr<const Engine>>, EnginePreference>;
ReplayedEngine engine_of_lock(const LockUse& use, EngineRequest& request,
                              const std::vector<std::shared_ptr<const Engine>>& engines, const DeviceManager& devices);

}  // namespace xpuruntime
