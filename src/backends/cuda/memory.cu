#include <cstring>

#include "backends/cuda/memory.h"

namespace xpuruntime::cuda {
namespace {

/// Reads all of it. That it may write keeps the compiler from leaving the reads out.
__global__ void read_all(uint4* memory, std::size_t count) {
  unsigned sum = 0;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint4 value = memory[i];
    sum |= value.x | value.y | value.z | value.w;
  }
  if (sum == 0x5eed5eedu) memory[0].x = 0;
}

struct Value {
  unsigned char bytes[16];
};

__global__ void write_bytes(unsigned char* memory, const Value value) {
  memory[threadIdx.x] = value.bytes[threadIdx.x];
}

}  // namespace

cudaError_t write_value(void* memory, const void* value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (bytes > sizeof(Value)) return cudaErrorInvalidValue;
  Value given = {};
  std::memcpy(given.bytes, value, bytes);
  void* arguments[] = {&memory, &given};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&write_bytes), dim3(1), dim3(static_cast<unsigned>(bytes)),
                          arguments, 0, stream);
}

cudaError_t flush_caches(void* memory, std::size_t bytes, cudaStream_t stream) {
  constexpr std::size_t vector = sizeof(uint4);
  const std::size_t half = bytes / 2 / vector * vector;
  // Lines that were only written would be written back while the next kernel runs: reading takes their place.
  const cudaError_t written = cudaMemsetAsync(memory, 1, half, stream);
  if (written != cudaSuccess || half == 0) return written;
  auto* second = reinterpret_cast<uint4*>(static_cast<std::byte*>(memory) + half);
  std::size_t count = half / vector;
  void* arguments[] = {&second, &count};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&read_all), dim3(1024), dim3(512), arguments, 0, stream);
}

}  // namespace xpuruntime::cuda
