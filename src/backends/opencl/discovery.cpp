#include "backends/opencl/driver.h"
#include "backends/opencl/profile.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t max_devices = 256;  // Device::index is a byte

std::vector<cl_platform_id> platforms() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> ids(count);
  if (count == 0 || clGetPlatformIDs(count, ids.data(), nullptr) != CL_SUCCESS) return {};
  return ids;
}

/// Empty if the device can be used.
std::string why_unusable(cl_device_id device) {
  if (!device_value<cl_bool>(device, CL_DEVICE_AVAILABLE)) return "is not available";
  if (!device_value<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE)) return "has no compiler";
  return {};
}

void add_devices(cl_platform_id platform, Discovery& found, std::string& notes) {
  cl_uint count = 0;
  const cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (code != CL_SUCCESS || count == 0) {
    notes += "platform '" + platform_text(platform, CL_PLATFORM_NAME) + "' has no device, " +
             error_name(code == CL_SUCCESS ? CL_DEVICE_NOT_FOUND : code) + "; ";
    return;
  }
  std::vector<cl_device_id> devices(count);
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr) != CL_SUCCESS) return;
  for (cl_device_id device : devices) {
    const std::string problem = why_unusable(device);
    if (!problem.empty()) {
      notes += "device '" + device_text(device, CL_DEVICE_NAME) + "' " + problem + "; ";
    } else if (found.devices.size() < max_devices) {
      found.devices.push_back(device);
      found.profiles.push_back(read_profile(platform, device));
    }
  }
}

}  // namespace

Discovery discover() {
  Discovery found;
  if (const Status status = start_here(); !status.ok()) {
    found.why_absent = status.message();
    return found;
  }
  const std::vector<cl_platform_id> ids = platforms();
  if (ids.empty()) {
    found.why_absent = "no OpenCL platform: install an ICD such as pocl-opencl-icd, or the vendor's driver";
    return found;
  }
  std::string notes;
  for (cl_platform_id platform : ids) add_devices(platform, found, notes);
  if (found.devices.empty())
    found.why_absent = "no usable OpenCL device: " + notes + "install pocl-opencl-icd, or the vendor's driver";
  return found;
}

}  // namespace xpuruntime::opencl
