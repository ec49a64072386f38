#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"

namespace xpuruntime::cuda {

/// The outcome of a CUDA call as a Status. Also clears the runtime's own note of the error, so that the next user of
/// this thread's CUDA does not stumble over it.
Status to_status(cudaError_t error, std::string_view what);

/// Like to_status, but throws.
void check(cudaError_t error, std::string_view function, std::string_view what);

/// Whether the device takes no more work in this process.
bool is_lost(cudaError_t error);

/// Makes a device current in CUDA for a block and brings the caller's back.
class ScopedDevice {
 public:
  explicit ScopedDevice(int index) noexcept;
  ~ScopedDevice();
  ScopedDevice(const ScopedDevice&) = delete;
  ScopedDevice& operator=(const ScopedDevice&) = delete;

  /// Why the device could not be made current; cudaSuccess if it is.
  cudaError_t error() const { return error_; }

 private:
  int previous_ = 0;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace xpuruntime::cuda
