#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace xpuruntime::cuda {

/// Queues a write of the first half of the memory and a read of the second. See DeviceDriver::flush_caches.
cudaError_t flush_caches(void* memory, std::size_t bytes, cudaStream_t stream);

/// Queues the writing of up to 16 bytes, which go with the launch. See DeviceDriver::write_value.
cudaError_t write_value(void* memory, const void* value, std::size_t bytes, cudaStream_t stream);

}  // namespace xpuruntime::cuda
