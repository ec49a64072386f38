#include <dlfcn.h>
#include <unistd.h>

#include <fstream>

#include "backends/cuda/check.h"
#include "backends/cuda/cublaslt_api.h"
#include "backends/cuda/driver.h"
#include "core/fork_guard.h"

namespace xpuruntime::cuda {
namespace {

std::string version_text(int version) {  // 13000 is 13.0
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The kernel module's version ("580.159.04") where the system shows it, else the CUDA version the driver speaks.
std::string driver_version() {
  std::string version;
  std::ifstream("/sys/module/nvidia/version") >> version;
  if (!version.empty()) return version;
  int cuda = 0;
  if (cudaDriverGetVersion(&cuda) != cudaSuccess) cudaGetLastError();
  return "CUDA " + version_text(cuda);
}

std::map<std::string, std::string> library_versions() {
  std::map<std::string, std::string> versions;
  int runtime = 0;
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) versions["cuda"] = version_text(runtime);
  if (std::string version = cublaslt_version(); !version.empty()) versions["cublasLt"] = std::move(version);
  if (std::string version = cublas_version(); !version.empty()) versions["cublas"] = std::move(version);
  return versions;
}

void fill_sizes(DeviceProfile& profile, const cudaDeviceProp& properties) {
  profile.compute_units = properties.multiProcessorCount;
  profile.integrated = properties.integrated != 0;
  profile.global_memory_bytes = properties.totalGlobalMem;
  profile.local_memory_bytes = properties.sharedMemPerBlockOptin;
  profile.l2_bytes = static_cast<std::uint64_t>(properties.l2CacheSize);
  profile.cache_line_bytes = 128;
  profile.max_work_group_size = static_cast<std::uint32_t>(properties.maxThreadsPerBlock);
  for (const int extent : properties.maxThreadsDim) {
    profile.max_work_item_sizes.push_back(static_cast<std::uint32_t>(extent));
  }
  profile.sub_group_size = static_cast<std::uint32_t>(properties.warpSize);
}

void fill_arithmetic(DeviceProfile& profile) {
  const int capability = profile.compute_capability_major * 10 + profile.compute_capability_minor;
  profile.fp64 = true;
  profile.fp16 = capability >= 53;
  profile.int8 = capability >= 61;
  profile.tensor_cores = capability >= 70;
  profile.bf16 = capability >= 80;
  profile.fp8 = capability >= 89;
}

DeviceProfile profile_of(const cudaDeviceProp& properties) {
  DeviceProfile profile;
  profile.type = DeviceType::nvidia;
  profile.vendor = "nvidia";
  profile.name = properties.name;
  profile.driver_version = driver_version();
  profile.library_versions = library_versions();
  profile.compute_capability_major = properties.major;
  profile.compute_capability_minor = properties.minor;
  fill_sizes(profile, properties);
  fill_arithmetic(profile);
  return profile;
}

std::string why_no_driver() {
  // The runtime only says that the driver is too old when there is none at all.
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return std::string("no NVIDIA driver: ") + dlerror() + "; install the driver";
  dlclose(library);
  return {};
}

}  // namespace

bool has_driver() {
  for (const char* path : {"/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg", "/dev/nvhost-ctrl-gpu"}) {
    if (access(path, F_OK) == 0) return true;
  }
  return false;
}

Probe probe_devices() {
  static constinit ForkGuard guard;
  if (!guard.start()) {
    return {{},
            "CUDA was being started when this process was forked, and does not work in the child: use it only "
            "after the fork, or start processes anew (multiprocessing's \"spawn\")"};
  }
  if (std::string why = why_no_driver(); !why.empty()) return {{}, std::move(why)};
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    cudaGetLastError();
    return {{}, std::string("no CUDA device: ") + cudaGetErrorString(error) + "; check what nvidia-smi says"};
  }
  Probe probe;
  for (int index = 0; index < count && index <= 255; ++index) {  // Device::index has eight bits
    cudaDeviceProp properties = {};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
      cudaGetLastError();
      // Indices must stay CUDA's own, so the devices behind a broken one are left out too.
      probe.why_absent = "no CUDA device: device " + std::to_string(index) + ": " + cudaGetErrorString(error) +
                         "; check what nvidia-smi says";
      break;
    }
    probe.devices.push_back(profile_of(properties));
  }
  if (!probe.devices.empty()) {
    probe.why_absent.clear();
  } else if (probe.why_absent.empty()) {
    probe.why_absent = "no CUDA device: the driver lists none; check CUDA_VISIBLE_DEVICES";
  }
  return probe;
}

}  // namespace xpuruntime::cuda
