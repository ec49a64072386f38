#pragma once

#include <memory>

#include "xpuruntime/device/driver.h"
#include "xpuruntime/registry/backend.h"

namespace xpuruntime {

/// The backend that is always there.
std::shared_ptr<Backend> make_cpu_backend();

/// The processor this runs on, as a device: plain memory, and work that is done when a call returns.
std::shared_ptr<DeviceDriver> make_cpu_driver();

}  // namespace xpuruntime
