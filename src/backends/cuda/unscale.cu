#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

/// A gradient that is not finite has no finite product with anything, so the products alone tell. Whoever finds one
/// stores the same 1 over the 0 that is there.
template <class T>
__global__ void __launch_bounds__(element_threads) unscale(const UnscaleLaunch p, const Pointers x) {
  constexpr int width = per_vector<T>;
  const float inverse = *static_cast<const float*>(x.inputs[1]);
  const T* from = static_cast<const T*>(x.inputs[0]);
  float* to = static_cast<float*>(x.output);
  bool found = false;
  const auto product = [&](T value) {
    const float result = to_float(value) * inverse;
    found |= !isfinite(result);
    return result;
  };
  const std::int64_t packs = p.shape.contiguous ? p.shape.count / width : 0;
  for (std::int64_t i = thread_index(); i < packs; i += thread_count()) {
    const Pack<T, width> values = reinterpret_cast<const Pack<T, width>*>(from)[i];
    Pack<float, width> results;
#pragma unroll
    for (int j = 0; j < width; ++j) results.values[j] = product(values.values[j]);
    reinterpret_cast<Pack<float, width>*>(to)[i] = results;
  }
  for (std::int64_t i = packs * width + thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    to[at.output] = product(from[at.first]);
  }
  if (found) *static_cast<float*>(x.second_output) = 1;
}

}  // namespace

cudaError_t launch(const UnscaleLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const cudaError_t error = cudaMemsetAsync(pointers.second_output, 0, sizeof(float), stream);
  if (error != cudaSuccess || launch.shape.count == 0) return error;
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t width = launch.shape.contiguous ? per_vector<T> : 1;
    const unsigned blocks = blocks_for((launch.shape.count + width - 1) / width, element_threads);
    return queue(unscale<T>, blocks, element_threads, launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
