#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/opencl/cl_api.h"
#include "backends/opencl/platforms.h"
#include "xpuruntime/device/profile.h"

namespace xpuruntime::opencl {

/// "nvidia", "intel", "amd", "apple", "arm" ... by the id where that is known, else from what drivers print. A
/// processor driven by PoCL is "pocl", because its kernels behave like PoCL's and not like those of the processor's
/// maker.
std::string vendor_name(std::string_view platform_name, std::uint32_t vendor_id, std::string_view device_vendor,
                        bool is_cpu);

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

/// Tells our sources of instructions of the device that OpenCL has no function for: " -D NVIDIA_PAIRS".
std::string native_options(cl_device_id device);

/// Empty where there is none, or the driver fails.
std::vector<cl_platform_id> all_platforms();
std::vector<cl_device_id> devices_of(cl_platform_id platform);

bool is_pocl(cl_platform_id platform);
/// Where PoCL keeps what it compiled, as it finds it itself.
std::string pocl_cache_folder();

/// What the device says of itself. `tried` is what it was seen to do, where that is known.
DeviceProfile read_profile(cl_platform_id platform, cl_device_id device, const TriedDevice* tried = nullptr);

}  // namespace xpuruntime::opencl
