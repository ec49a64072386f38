#pragma once

namespace xpuruntime {

class Runtime;

/// Whether XPURUNTIME_TUNE is on: the process's store is then to be written.
bool tuning_is_asked_for();

/// What the environment asks of the process's runtime, for people who cannot change the program: XPURUNTIME_POLICY,
/// _LOCK, _TUNE, _VERBOSE and _TRACE; docs/environment.md. A value that makes no sense is an error.
void apply_environment(Runtime& runtime);

}  // namespace xpuruntime
