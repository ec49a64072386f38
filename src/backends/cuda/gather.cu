#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

/// Adds to `from` what the indices of a position say; false, and the fault is set, where one is outside.
__device__ inline bool add_indices(const GatherLaunch& p, const Pointers& x, std::int64_t position,
                                   std::int64_t& from) {
#pragma unroll 1
  for (int column = 0; column < p.columns; ++column) {
    const std::int64_t extent = p.extents[column];
    std::int64_t index = load_index(x.inputs[1], p.index, position + p.next[column]);
    if (index < 0) index += extent;
    if (index < 0 || index >= extent) {
      *static_cast<volatile std::uint32_t*>(x.fault) = 1;
      return false;
    }
    from += index * p.steps[column];
  }
  return true;
}

template <class Unit, class Index>
__global__ void __launch_bounds__(element_threads) gather_units(const GatherLaunch p, const Pointers x) {
  wait_for_previous();
  constexpr int count = units_per_thread<Unit>;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * element_threads * count + threadIdx.x;
  Unit units[count];
  std::int64_t output[count];  // -1: nothing is written
#pragma unroll
  for (int i = 0; i < count; ++i) {
    output[i] = -1;
    const std::int64_t unit = first + i * element_threads;
    if (unit >= p.shape.count) continue;
    Offsets at = offsets_of<Index>(p.shape, static_cast<Index>(unit));
    if (!add_indices(p, x, at.second, at.first)) continue;
    units[i] = static_cast<const Unit*>(x.inputs[0])[at.first];
    output[i] = at.output;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (output[i] >= 0) static_cast<Unit*>(x.output)[output[i]] = units[i];
  }
}

}  // namespace

cudaError_t launch(const GatherLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count == 0) return cudaSuccess;
  return with_unit(launch.unit, [&](auto unit) {
    using Unit = decltype(unit);
    const auto kernel =
        fits_32_bits(launch.shape) ? gather_units<Unit, std::uint32_t> : gather_units<Unit, std::uint64_t>;
    return queue_overlapping(kernel, blocks_of_units<Unit>(launch.shape.count), element_threads, launch, pointers,
                             stream);
  });
}

}  // namespace xpuruntime::cuda
