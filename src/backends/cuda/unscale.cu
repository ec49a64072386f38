#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

/// A gradient that is not finite has no finite product with anything, so the products alone tell. Whoever finds one
/// stores the same 1 over the 0 that is there.
struct Products {
  float inverse;
  bool found = false;

  explicit __device__ Products(const Pointers& x) : inverse(*static_cast<const float*>(x.inputs[1])) {}
  template <class T>
  __device__ float of(T value) {
    const float result = to_float(value) * inverse;
    found |= !isfinite(result);
    return result;
  }
  __device__ void tell(const Pointers& x) const {
    if (found) *static_cast<float*>(x.second_output) = 1;
  }
};

/// Where both are one run of memory: a vector for each thread, as in by_runs.
template <class T>
__global__ void __launch_bounds__(run_threads) unscale_runs(const std::int64_t count, const Pointers x) {
  constexpr int width = per_vector<T>;
  const std::int64_t first = thread_index() * width;
  float* to = static_cast<float*>(x.output) + first;
  if (first + width > count) {
    Products products(x);
    for (int i = 0; first + i < count; ++i) to[i] = products.of(static_cast<const T*>(x.inputs[0])[first + i]);
    return products.tell(x);
  }
  const Vector<T> values = load_operand<T>(x.inputs[0], first, false);
  Products products(x);
  Pack<float, width> results;
#pragma unroll
  for (int j = 0; j < width; ++j) results.values[j] = products.of(values.values[j]);
  *reinterpret_cast<Pack<float, width>*>(to) = results;
  products.tell(x);
}

template <class T>
__global__ void __launch_bounds__(element_threads) unscale(const UnscaleLaunch p, const Pointers x) {
  Products products(x);
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    static_cast<float*>(x.output)[at.output] = products.of(static_cast<const T*>(x.inputs[0])[at.first]);
  }
  products.tell(x);
}

}  // namespace

cudaError_t launch(const UnscaleLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const cudaError_t error = cudaMemsetAsync(pointers.second_output, 0, sizeof(float), stream);
  if (error != cudaSuccess || launch.shape.count == 0) return error;
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t count = launch.shape.count;
    if (launch.shape.contiguous) {
      return queue(unscale_runs<T>, blocks_of_vectors<T>(count, run_threads), run_threads, count, pointers, stream);
    }
    return queue(unscale<T>, blocks_for(count, element_threads), element_threads, launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
