#include <type_traits>

#include "backends/cuda/elementwise.cuh"
#include "backends/cuda/finish.cuh"

namespace xpuruntime::cuda {
namespace {

/// An element and its place along the line; -1: there is none.
template <class Number>
struct Found {
  Number value = 0;
  std::int64_t place = -1;
};

/// Whether a is in front of b: NaN before all, of equal ones the first or the last.
template <class Number>
__device__ inline bool comes_first(const ArgLaunch& p, const Found<Number>& a, const Found<Number>& b) {
  if (a.place < 0 || b.place < 0) return b.place < 0;
  if (a.value > b.value) return p.largest;
  if (a.value < b.value) return !p.largest;
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan;
  return (a.place > b.place) == p.last;
}

/// `Element` void: of the launch's dtype.
template <class Number, class Element>
__device__ inline Number load_number(const ArgLaunch& p, const void* data, std::int64_t at) {
  if constexpr (std::is_void_v<Element>) {
    return load_as<Number>(data, p.dtype, at);
  } else {
    return to_float(static_cast<const Element*>(data)[at]);
  }
}

template <class Number, class Element>
__global__ void __launch_bounds__(ArgLaunch::most_threads) find_places(const ArgLaunch p, const Pointers x) {
  __shared__ Number values[ArgLaunch::most_threads];
  __shared__ std::int64_t places[ArgLaunch::most_threads];
  wait_for_previous();
  const int thread = static_cast<int>(threadIdx.x);
  const int line = p.along_first ? thread / p.along : thread % p.across;
  const int member = p.along_first ? thread % p.along : thread / p.across;
  const int slot = member * p.across + line;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * p.across;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.across; first < p.lines.count; first += step) {
    const bool is_there = first + line < p.lines.count;
    const Offsets at = is_there ? offsets_in(p.lines, first + line) : Offsets{};
    Found<Number> best;
#pragma unroll 4
    for (std::int64_t i = is_there ? member : p.length; i < p.length; i += p.along) {
      const Found<Number> next{load_number<Number, Element>(p, x.inputs[0], at.first + i * p.step), i};
      if (comes_first(p, next, best)) best = next;
    }
    values[slot] = best.value;
    places[slot] = best.place;
    for (int half = p.along / 2; half > 0; half /= 2) {
      __syncthreads();
      if (member >= half) continue;
      const Found<Number> other{values[slot + half * p.across], places[slot + half * p.across]};
      if (!comes_first(p, other, best)) continue;
      best = other;
      values[slot] = best.value;
      places[slot] = best.place;
    }
    if (is_there && member == 0) store_as(x.output, p.output, at.output, best.place);
    __syncthreads();  // before the next lines' values come
  }
}

template <class Number, class Element = void>
cudaError_t launch_numbers(const ArgLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return queue_overlapping(find_places<Number, Element>, blocks_for(launch.lines.count, launch.across),
                           static_cast<unsigned>(launch.along * launch.across), launch, pointers, stream);
}

}  // namespace

cudaError_t launch(const ArgLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.lines.count == 0) return cudaSuccess;
  switch (launch.dtype) {
    case DataType::float64:
      return launch_numbers<double>(launch, pointers, stream);
    case DataType::float32:
      return launch_numbers<float, float>(launch, pointers, stream);
    case DataType::float16:
      return launch_numbers<float, f16>(launch, pointers, stream);
    case DataType::bfloat16:
      return launch_numbers<float, bf16>(launch, pointers, stream);
    default:
      return launch.dtype >= DataType::int64 ? launch_numbers<std::int64_t>(launch, pointers, stream)
                                             : launch_numbers<float>(launch, pointers, stream);
  }
}

}  // namespace xpuruntime::cuda
