#pragma once

#include <memory>

#include "xpuruntime/registry/backend.h"

namespace xpuruntime {

/// The backend that is always there.
std::shared_ptr<Backend> make_cpu_backend();

}  // namespace xpuruntime
