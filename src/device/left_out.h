#pragma once

#include <string>
#include <vector>

namespace xpuruntime {

/// Of a DeviceDriver that tries what is installed before it uses it; others are not one (dynamic_cast).
class TryingDriver {
 public:
  virtual ~TryingDriver() = default;
  /// What is installed and not used, each with the reason: "pocl.icd: it crashed with signal 6 ...".
  virtual std::vector<std::string> left_out() const = 0;
};

}  // namespace xpuruntime
