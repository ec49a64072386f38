#pragma once

#include "backends/cuda/launch.cuh"
#include "backends/cuda/numeric.cuh"

namespace xpuruntime::cuda {

inline constexpr int element_threads = 256;

/// Where element `index`, counted in the output's row-major order, lies in each operand.
struct Offsets {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t output = 0;
};

/// `Index` is 32 bits wide where the count allows: 64-bit division is slow.
template <class Index>
__device__ inline Offsets offsets_of(const ElementwiseShape& shape, Index index) {
  Offsets offsets;
  for (int dim = shape.rank - 1; dim >= 0; --dim) {
    const Index extent = static_cast<Index>(shape.extent[dim]);
    const auto at = static_cast<std::int64_t>(index % extent);
    index /= extent;
    offsets.first += at * shape.strides[0][dim];
    offsets.second += at * shape.strides[1][dim];
    offsets.output += at * shape.strides[2][dim];
  }
  return offsets;
}

/// Eight neighbours, moved 16 bytes at a time.
template <class T>
struct alignas(sizeof(T) * 8 < 16 ? sizeof(T) * 8 : 16) Pack {
  T values[8];
};

__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t thread_count() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

inline bool fits_32_bits(const ElementwiseShape& shape) { return shape.count < (std::int64_t{1} << 31); }

}  // namespace xpuruntime::cuda
