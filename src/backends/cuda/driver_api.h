#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace xpuruntime::cuda {

/// What every call asks of the driver itself: that takes a part of the time of the runtime's functions for the same.
/// Both have the same current device, streams and numbers of errors.
struct DriverApi {
  decltype(&cuCtxGetCurrent) context = nullptr;
  decltype(&cuCtxGetDevice) device = nullptr;  // of the current context
  decltype(&cuStreamIsCapturing) is_capturing = nullptr;
  decltype(&cuLaunchKernelEx) launch = nullptr;
};
/// Null where the driver lacks one of them: use the runtime's. Starts the driver.
const DriverApi* driver_api();

/// The device of this thread's current context. False where there is none: the runtime knows which it would make.
bool current_device(int& index);
inline bool is_current(int index) {
  int current = -1;
  return current_device(current) && current == index;
}

/// Queues a kernel of this library on the current device. Returns this launch's own error. With `overlaps` it may start
/// while the kernel before it ends, where its code can wait for that one: from Hopper on.
cudaError_t launch_kernel(const void* kernel, CUlaunchConfig config, void** arguments, bool overlaps);

}  // namespace xpuruntime::cuda
