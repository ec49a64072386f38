#pragma once

#include <cstdint>

#include "backends/cuda/launch.h"

namespace xpuruntime::cuda {

/// Queues a kernel of the form kernel(parameters, pointers). Returns this launch's own error, which the `<<<>>>` form
/// would mix with what earlier calls of the thread left behind.
template <class Parameters>
cudaError_t queue(void (*kernel)(Parameters, Pointers), dim3 grid, unsigned threads, const Parameters& parameters,
                  const Pointers& pointers, cudaStream_t stream) {
  Parameters first = parameters;
  Pointers second = pointers;
  void* arguments[] = {&first, &second};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, dim3(threads), arguments, 0, stream);
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
