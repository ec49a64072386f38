#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace xpuruntime::cuda {

/// Queues a write of the first half of the memory and a read of the second. See DeviceDriver::flush_caches.
cudaError_t flush_caches(void* memory, std::size_t bytes, cudaStream_t stream);

}  // namespace xpuruntime::cuda
