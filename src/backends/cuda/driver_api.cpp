#include "backends/cuda/driver_api.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime::cuda {
namespace {

template <class Function>
void find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableLegacyStream, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableLegacyStream, &result);
#endif
  if (error != cudaSuccess) cudaGetLastError();
  if (error == cudaSuccess && result == cudaDriverEntryPointSuccess) function = reinterpret_cast<Function>(found);
}

struct Function {
  CUfunction handle = nullptr;
  bool waits = false;  // its code is for Hopper or later, where a kernel can wait for the one before it
};

/// The driver's handles of kernels. Entries are only added, and read without a lock.
class Functions {
 public:
  /// Null where the runtime has to launch the kernel: then it also makes the context current that there is none of.
  Function get(const void* kernel, const DriverApi& api) {
    CUcontext context = nullptr;
    if (api.context(&context) != CUDA_SUCCESS || context == nullptr) return {};
    std::size_t at = first_slot(kernel);
    for (const void* there; (there = slots_[at].kernel.load(std::memory_order_acquire)) != nullptr; at = after(at)) {
      if (there == kernel && slots_[at].context == context) return slots_[at].function;
    }
    return add(kernel, context);
  }

 private:
  static constexpr std::size_t count = 4096;  // a power of two; more than there are kernels, times some devices
  struct Slot {
    std::atomic<const void*> kernel = nullptr;  // set last
    CUcontext context = nullptr;
    Function function = {};
  };

  static std::size_t first_slot(const void* kernel) {
    return reinterpret_cast<std::uintptr_t>(kernel) * 0x9e3779b97f4a7c15ULL >> 52;
  }
  static std::size_t after(std::size_t slot) { return (slot + 1) % count; }

  Function add(const void* kernel, CUcontext context) {
    Function function;
    cudaFuncAttributes attributes = {};
    if (cudaGetFuncBySymbol(&function.handle, kernel) != cudaSuccess ||
        cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
      cudaGetLastError();  // the launch shows it
      return {};
    }
    function.waits = attributes.ptxVersion >= 90;
    const std::lock_guard lock(mutex_);
    if (used_ == count / 2) return function;
    std::size_t at = first_slot(kernel);
    while (slots_[at].kernel.load(std::memory_order_relaxed) != nullptr) at = after(at);
    ++used_;
    slots_[at].context = context;
    slots_[at].function = function;
    slots_[at].kernel.store(kernel, std::memory_order_release);
    return function;
  }

  Mutex mutex_;
  std::size_t used_ = 0;
  Slot slots_[count];
};

cudaError_t launch_by_runtime(const void* kernel, const CUlaunchConfig& config, void** arguments) {
  cudaLaunchConfig_t same = {};
  same.gridDim = dim3(config.gridDimX, config.gridDimY, config.gridDimZ);
  same.blockDim = dim3(config.blockDimX, config.blockDimY, config.blockDimZ);
  same.dynamicSmemBytes = config.sharedMemBytes;
  same.stream = config.hStream;
  same.attrs = reinterpret_cast<cudaLaunchAttribute*>(config.attrs);  // one type by two names
  same.numAttrs = config.numAttrs;
  return cudaLaunchKernelExC(&same, kernel, arguments);
}

}  // namespace

const DriverApi* driver_api() {
  static const DriverApi api = [] {
    DriverApi found;
    find("cuCtxGetCurrent", found.context);
    find("cuCtxGetDevice", found.device);
    find("cuStreamIsCapturing", found.is_capturing);
    find("cuLaunchKernelEx", found.launch);
    return found;
  }();
  const bool whole = api.context != nullptr && api.device != nullptr && api.is_capturing != nullptr && api.launch;
  return whole ? &api : nullptr;
}

bool current_device(int& index) {
  const DriverApi* api = driver_api();
  return api != nullptr && api->device(&index) == CUDA_SUCCESS;
}

cudaError_t launch_kernel(const void* kernel, CUlaunchConfig config, void** arguments, bool overlaps) {
  static Functions functions;
  const DriverApi* api = driver_api();
  const Function function = api == nullptr ? Function{} : functions.get(kernel, *api);
  if (function.handle == nullptr) return launch_by_runtime(kernel, config, arguments);
  CUlaunchAttribute attributes[2] = {};
  if (overlaps && function.waits && config.numAttrs < std::size(attributes)) {
    std::copy_n(config.attrs, config.numAttrs, attributes);
    attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[config.numAttrs].value.programmaticStreamSerializationAllowed = 1;
    config.attrs = attributes;
    ++config.numAttrs;
  }
  return static_cast<cudaError_t>(api->launch(&config, function.handle, arguments, nullptr));
}

}  // namespace xpuruntime::cuda
