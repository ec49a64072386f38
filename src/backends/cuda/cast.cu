#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

/// Among float32, float16 and bfloat16, where float32 holds every value and so there is one rounding.
template <class From, class To>
__global__ void __launch_bounds__(element_threads) cast_contiguous(const CastLaunch p, const Pointers x) {
  const From* from = static_cast<const From*>(x.inputs[0]);
  To* to = static_cast<To*>(x.output);
  const std::int64_t packs = p.shape.count / 8;
  for (std::int64_t i = thread_index(); i < packs; i += thread_count()) {
    const Pack<From> values = reinterpret_cast<const Pack<From>*>(from)[i];
    Pack<To> results;
#pragma unroll
    for (int j = 0; j < 8; ++j) results.values[j] = from_float<To>(to_float(values.values[j]));
    reinterpret_cast<Pack<To>*>(to)[i] = results;
  }
  const std::int64_t rest = packs * 8 + thread_index();
  if (rest < p.shape.count) to[rest] = from_float<To>(to_float(from[rest]));
}

/// Any pair of float types in any layout.
template <class Index>
__global__ void __launch_bounds__(element_threads) cast_any(const CastLaunch p, const Pointers x) {
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_of<Index>(p.shape, static_cast<Index>(i));
    store_double(x.output, p.to, at.output, load_double(x.inputs[0], p.from, at.first));
  }
}

using Kernel = void (*)(CastLaunch, Pointers);

template <class From>
Kernel contiguous_kernel_from(DataType to) {
  switch (to) {
    case DataType::float32:
      return cast_contiguous<From, float>;
    case DataType::float16:
      return cast_contiguous<From, f16>;
    case DataType::bfloat16:
      return cast_contiguous<From, bf16>;
    default:
      return nullptr;
  }
}

/// Null where one of the types is not among the three.
Kernel contiguous_kernel(const CastLaunch& launch) {
  switch (launch.from) {
    case DataType::float32:
      return contiguous_kernel_from<float>(launch.to);
    case DataType::float16:
      return contiguous_kernel_from<f16>(launch.to);
    case DataType::bfloat16:
      return contiguous_kernel_from<bf16>(launch.to);
    default:
      return nullptr;
  }
}

}  // namespace

cudaError_t launch(const CastLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.count;
  if (count == 0) return cudaSuccess;
  const Kernel fast = launch.shape.contiguous ? contiguous_kernel(launch) : nullptr;
  if (fast != nullptr) {
    return queue(fast, blocks_for((count + 7) / 8, element_threads), element_threads, launch, pointers, stream);
  }
  const Kernel any = fits_32_bits(launch.shape) ? cast_any<std::uint32_t> : cast_any<std::uint64_t>;
  return queue(any, blocks_for(count, element_threads), element_threads, launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
