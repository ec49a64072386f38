#pragma once

#include <memory>

#include "xpuruntime/device/driver.h"

namespace xpuruntime {

/// The processor this runs on, as a device: plain memory, and work that is done when a call returns.
std::shared_ptr<DeviceDriver> make_cpu_driver();

}  // namespace xpuruntime
