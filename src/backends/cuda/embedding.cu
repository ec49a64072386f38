#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

template <class Unit, class Index>
__global__ void __launch_bounds__(element_threads) look_up(const EmbeddingLaunch p, const Pointers x) {
  const auto work = static_cast<Index>(p.count * p.units);
  const auto units = static_cast<Index>(p.units);
  const auto step = static_cast<Index>(thread_count());
  for (auto i = static_cast<Index>(thread_index()); i < work; i += step) {
    const Index at = i / units;
    const std::int64_t row = load_index(x.inputs[0], p.index, static_cast<std::int64_t>(at));
    if (row < 0 || row >= p.rows) {
      *static_cast<volatile std::uint32_t*>(x.fault) = 1;
      continue;
    }
    const auto* from = static_cast<const Unit*>(x.inputs[1]) + row * p.stride;
    static_cast<Unit*>(x.output)[i] = from[i - at * units];
  }
}

template <class Unit>
cudaError_t launch_units(const EmbeddingLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t work = launch.count * launch.units;
  // The step past the end must fit too.
  const auto kernel = work < (std::int64_t{1} << 31) ? look_up<Unit, std::uint32_t> : look_up<Unit, std::uint64_t>;
  return queue(kernel, blocks_for(work, element_threads), element_threads, launch, pointers, stream);
}

}  // namespace

cudaError_t launch(const EmbeddingLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.count == 0 || launch.units == 0) return cudaSuccess;
  return with_unit(launch.unit, [&](auto unit) { return launch_units<decltype(unit)>(launch, pointers, stream); });
}

}  // namespace xpuruntime::cuda
