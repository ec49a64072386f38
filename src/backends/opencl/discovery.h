#pragma once

#include <string>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "xpuruntime/device/profile.h"

namespace xpuruntime::opencl {

/// The OpenCL devices of this machine, in the order of the platforms; or why there is none.
struct Discovery {
  std::vector<cl_device_id> devices = {};
  std::vector<DeviceProfile> profiles = {};  // one for each device
  std::string why_absent = {};
};

Discovery discover();

}  // namespace xpuruntime::opencl
