#pragma once

#include <memory>
#include <string>

#include "xpuruntime/device/driver.h"

namespace xpuruntime {

/// The driver of a device type that cannot be used here, so that errors can say why.
std::shared_ptr<DeviceDriver> make_absent_driver(DeviceType type, std::string why);

}  // namespace xpuruntime
