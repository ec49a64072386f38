#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

__device__ inline double sum_of(double a, double b) { return a + b; }
__device__ inline float sum_of(float a, float b) { return a + b; }
// float32 holds any sum of two 16-bit floats closely enough that rounding it again is rounding once.
__device__ inline f16 sum_of(f16 a, f16 b) { return from_float<f16>(to_float(a) + to_float(b)); }
__device__ inline bf16 sum_of(bf16 a, bf16 b) { return from_float<bf16>(to_float(a) + to_float(b)); }
// Integers wrap around: unsigned addition, whose overflow has a meaning.
__device__ inline std::int32_t sum_of(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
__device__ inline std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

template <class T>
__global__ void __launch_bounds__(element_threads) add_contiguous(const AddLaunch p, const Pointers x) {
  const T* a = static_cast<const T*>(x.inputs[0]);
  const T* b = static_cast<const T*>(x.inputs[1]);
  T* c = static_cast<T*>(x.output);
  const std::int64_t packs = p.shape.count / 8;
  for (std::int64_t i = thread_index(); i < packs; i += thread_count()) {
    const Pack<T> left = reinterpret_cast<const Pack<T>*>(a)[i];
    const Pack<T> right = reinterpret_cast<const Pack<T>*>(b)[i];
    Pack<T> sums;
#pragma unroll
    for (int j = 0; j < 8; ++j) sums.values[j] = sum_of(left.values[j], right.values[j]);
    reinterpret_cast<Pack<T>*>(c)[i] = sums;
  }
  const std::int64_t rest = packs * 8 + thread_index();
  if (rest < p.shape.count) c[rest] = sum_of(a[rest], b[rest]);
}

template <class T, class Index>
__global__ void __launch_bounds__(element_threads) add_strided(const AddLaunch p, const Pointers x) {
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_of<Index>(p.shape, static_cast<Index>(i));
    const T a = static_cast<const T*>(x.inputs[0])[at.first];
    const T b = static_cast<const T*>(x.inputs[1])[at.second];
    static_cast<T*>(x.output)[at.output] = sum_of(a, b);
  }
}

template <class T>
cudaError_t launch_typed(const AddLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.count;
  if (launch.shape.contiguous) {
    // At least eight threads, for the rest behind the last pack of eight: any block has them.
    const unsigned blocks = blocks_for((count + 7) / 8, element_threads);
    return queue(add_contiguous<T>, blocks, element_threads, launch, pointers, stream);
  }
  const auto kernel = fits_32_bits(launch.shape) ? add_strided<T, std::uint32_t> : add_strided<T, std::uint64_t>;
  return queue(kernel, blocks_for(count, element_threads), element_threads, launch, pointers, stream);
}

}  // namespace

cudaError_t launch(const AddLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count == 0) return cudaSuccess;
  switch (launch.dtype) {
    case DataType::float64:
      return launch_typed<double>(launch, pointers, stream);
    case DataType::float16:
      return launch_typed<f16>(launch, pointers, stream);
    case DataType::bfloat16:
      return launch_typed<bf16>(launch, pointers, stream);
    case DataType::int32:
      return launch_typed<std::int32_t>(launch, pointers, stream);
    case DataType::int64:
      return launch_typed<std::int64_t>(launch, pointers, stream);
    default:
      return launch_typed<float>(launch, pointers, stream);
  }
}

}  // namespace xpuruntime::cuda
