#pragma once

#include <cstdlib>

namespace xpuruntime {

/// Null where it is not set. Programs that run with more rights than their caller has (setuid, file capabilities) see
/// none: a caller must not choose which files and plugins those open.
inline const char* environment_variable(const char* name) { return secure_getenv(name); }

}  // namespace xpuruntime
