#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xpuruntime/device/driver.h"

namespace xpuruntime {

/// The driver of a device type that cannot be used here, so that errors can say why.
std::shared_ptr<DeviceDriver> make_absent_driver(DeviceType type, std::string why);

/// Of a DeviceDriver that tries what is installed before it uses it; others are not one (dynamic_cast).
class TryingDriver {
 public:
  virtual ~TryingDriver() = default;
  /// What is installed and not used, each with the reason: "pocl.icd: it crashed with signal 6 ...".
  virtual std::vector<std::string> left_out() const = 0;
};

}  // namespace xpuruntime
