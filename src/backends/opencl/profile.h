#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "xpuruntime/device/profile.h"

namespace xpuruntime::opencl {

/// "nvidia", "intel", "amd", "apple", "arm" ... from what drivers print. A processor driven by PoCL is "pocl", because
/// its kernels behave like PoCL's and not like those of the processor's maker.
std::string vendor_name(std::string_view platform_name, std::string_view device_vendor, bool is_cpu);

/// The words of a list that drivers separate by spaces, more or less of them.
std::vector<std::string> split_words(std::string_view text);

/// A string that the driver has for a device or platform, without padding; empty if it has none.
std::string device_text(cl_device_id device, cl_device_info what);
std::string platform_text(cl_platform_id platform, cl_platform_info what);

/// A number that the driver has for a device; T{} if it has none.
template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value = {};
  return clGetDeviceInfo(device, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? value : T{};
}

DeviceProfile read_profile(cl_platform_id platform, cl_device_id device);

}  // namespace xpuruntime::opencl
