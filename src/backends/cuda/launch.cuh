#pragma once

#include <atomic>
#include <cstdint>

#include "backends/cuda/driver_api.h"
#include "backends/cuda/launch.h"

namespace xpuruntime::cuda {

/// How a kernel is launched.
struct LaunchConfig {
  CUlaunchConfig config = {};
  CUlaunchAttribute attribute = {};
  bool overlaps = false;

  LaunchConfig(dim3 grid, unsigned threads, cudaStream_t stream) {
    config.gridDimX = grid.x;
    config.gridDimY = grid.y;
    config.gridDimZ = grid.z;
    config.blockDimX = threads;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
  }
  LaunchConfig& with_shared_memory(int bytes) {
    config.sharedMemBytes = static_cast<unsigned>(bytes);
    return *this;
  }
  LaunchConfig& in_clusters_of(int blocks) {
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = static_cast<unsigned>(blocks);
    attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    config.numAttrs = blocks > 1 ? 1 : 0;
    return *this;
  }
  /// May start while the kernel before it ends: all its threads call wait_for_previous before they touch memory. Its
  /// launch takes about 0.6 us less of the host on Hopper.
  LaunchConfig& overlapping_previous() {
    overlaps = true;
    return *this;
  }
};

/// Queues a kernel of the form kernel(parameters, pointers). Returns this launch's own error, which the `<<<>>>` form
/// would mix with what earlier calls of the thread left behind.
template <class Parameters, class Addresses>
cudaError_t queue(void (*kernel)(Parameters, Addresses), LaunchConfig how, const Parameters& parameters,
                  const Addresses& pointers) {
  // A launch only reads its arguments.
  void* arguments[] = {const_cast<Parameters*>(&parameters), const_cast<Addresses*>(&pointers)};
  how.config.attrs = &how.attribute;
  return launch_kernel(reinterpret_cast<const void*>(kernel), how.config, arguments, how.overlaps);
}
template <class Parameters, class Addresses>
cudaError_t queue(void (*kernel)(Parameters, Addresses), dim3 grid, unsigned threads, const Parameters& parameters,
                  const Addresses& pointers, cudaStream_t stream) {
  return queue(kernel, LaunchConfig(grid, threads, stream), parameters, pointers);
}

/// A number for each of the first devices; 0 where it is not known yet.
class PerDevice {
 public:
  /// Of the current device. Null: it is none of the first.
  std::atomic<int>* current() {
    int device = 0;
    const bool known = (current_device(device) || cudaGetDevice(&device) == cudaSuccess) && device < count;
    return known ? &numbers_[device] : nullptr;
  }

 private:
  static constexpr int count = 16;
  std::atomic<int> numbers_[count] = {};
};

/// Lets a kernel have so much shared memory; asks the device only where it had less before.
template <auto kernel>
cudaError_t allow_memory(int bytes) {
  static PerDevice allowed;
  std::atomic<int>* const here = allowed.current();
  if (here != nullptr && here->load(std::memory_order_relaxed) >= bytes) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error == cudaSuccess && here != nullptr) here->store(bytes, std::memory_order_relaxed);
  return error;
}

/// The compute capability, times ten, that the kernel's code for the current device was written for; 0 on failure.
template <auto kernel>
int code_version() {
  static PerDevice versions;
  std::atomic<int>* const here = versions.current();
  if (const int known = here == nullptr ? 0 : here->load(std::memory_order_relaxed); known != 0) return known;
  cudaFuncAttributes attributes = {};
  if (cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess) {
    cudaGetLastError();  // not for the next who asks
    return 0;
  }
  if (here != nullptr) here->store(attributes.ptxVersion, std::memory_order_relaxed);
  return attributes.ptxVersion;
}

/// Queues a kernel whose threads begin with wait_for_previous.
template <class Parameters, class Addresses>
cudaError_t queue_overlapping(void (*kernel)(Parameters, Addresses), dim3 grid, unsigned threads,
                              const Parameters& parameters, const Addresses& pointers, cudaStream_t stream) {
  return queue(kernel, LaunchConfig(grid, threads, stream).overlapping_previous(), parameters, pointers);
}

__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Calls `use` with an unsigned value of so many bytes, of which kernels are made.
template <class Use>
cudaError_t with_unit(int bytes, Use&& use) {
  switch (bytes) {
    case 1:
      return use(std::uint8_t{});
    case 2:
      return use(std::uint16_t{});
    case 4:
      return use(std::uint32_t{});
    case 8:
      return use(std::uint64_t{});
    default:
      return use(uint4{});
  }
}

/// Blocks for `work` items, no more than a grid-stride loop needs to fill any device.
inline unsigned blocks_for(std::int64_t work, int threads) {
  const std::int64_t blocks = (work + threads - 1) / threads;
  return static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
}

}  // namespace xpuruntime::cuda
