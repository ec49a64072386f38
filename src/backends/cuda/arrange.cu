#include "backends/cuda/elementwise.cuh"
#include "backends/cuda/finish.cuh"

namespace xpuruntime::cuda {
namespace {

/// Where along a dim of the input element `at` of the output comes from; what is outside is filled.
template <class Index>
__device__ inline Index source_of(const ArrangedDim& dim, Index at) {
  const auto size = static_cast<Index>(dim.size);
  const Index place = at + static_cast<Index>(dim.first);
  switch (dim.source) {
    case Source::edge:
      return place < 0 ? 0 : place >= size ? size - 1 : place;
    case Source::wrap:
      return place % size;
    case Source::mirror: {
      const Index phase = place % size;
      return phase <= size / 2 ? phase : size - phase;
    }
    default:
      return place;
  }
}

struct ArrangedPlace {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t diagonal = 0;  // from the one that bounds the triangle
  bool filled = false;
};

/// `Index` is signed: padding begins before the first place.
template <class Index>
__device__ inline ArrangedPlace place_of(const ArrangeLaunch& p, Index unit) {
  ArrangedPlace place;
  place.diagonal = -p.diagonal;
  for (int d = p.rank - 1; d >= 0; --d) {
    const ArrangedDim& dim = p.dims[d];
    const auto extent = static_cast<Index>(dim.extent);
    const Index before = d == 0 ? 0 : unit / extent;
    const Index at = unit - before * extent;
    unit = before;
    const Index source = source_of(dim, at);
    if (dim.source == Source::cut && (source < 0 || source >= static_cast<Index>(dim.size))) place.filled = true;
    place.from += static_cast<std::int64_t>(source) * dim.from;
    place.to += static_cast<std::int64_t>(at) * dim.to;
    place.diagonal += static_cast<std::int64_t>(at) * dim.diagonal;
  }
  return place;
}

/// 8 bytes of what fills.
__device__ __noinline__ std::uint64_t filling(const ArrangeLaunch& p, const void* value) {
  std::uint64_t bits = 0;
  convert(&bits, p.dtype, 0, value, p.value, 0);
  return bits;
}

template <class Unit>
__device__ inline Unit filled_unit(const ArrangeLaunch& p, const Pointers& x) {
  if (!p.has_value) return Unit{};
  std::uint64_t bits = 0;
  if (p.value != p.dtype) {
    bits = filling(p, x.inputs[1]);
  } else if (p.size == 1) {
    bits = *static_cast<const std::uint8_t*>(x.inputs[1]);
  } else if (p.size == 2) {
    bits = *static_cast<const std::uint16_t*>(x.inputs[1]);
  } else if (p.size == 4) {
    bits = *static_cast<const std::uint32_t*>(x.inputs[1]);
  } else {
    bits = *static_cast<const std::uint64_t*>(x.inputs[1]);
  }
  for (int size = p.size; size < 8; size *= 2) bits |= bits << (8 * size);
  if constexpr (sizeof(Unit) == 16) {
    const auto low = static_cast<std::uint32_t>(bits), high = static_cast<std::uint32_t>(bits >> 32);
    return Unit{low, high, low, high};
  } else {
    return static_cast<Unit>(bits);
  }
}

/// Whether an element of that diagonal is in the triangle.
__device__ inline bool is_kept(const ArrangeLaunch& p, std::int64_t diagonal) { return p.triangle * diagonal >= 0; }

/// A unit with 0 for its elements beyond the triangle.
template <class Unit>
__device__ inline Unit cut_unit(const ArrangeLaunch& p, Unit unit, std::int64_t diagonal) {
  union {
    Unit whole;
    std::uint8_t bytes[sizeof(Unit)];
  } out;
  out.whole = unit;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(Unit)); ++i) {
    if (!is_kept(p, diagonal + i / p.size * p.neighbours)) out.bytes[i] = 0;
  }
  return out.whole;
}

template <class Unit>
__device__ inline Unit arranged_unit(const ArrangeLaunch& p, const Pointers& x, const ArrangedPlace& place) {
  if (place.filled) return filled_unit<Unit>(p, x);
  const Unit* from = static_cast<const Unit*>(x.inputs[0]) + place.from;
  if (p.triangle == 0) return *from;
  const int last = static_cast<int>(sizeof(Unit)) / p.size - 1;
  const bool begins = is_kept(p, place.diagonal), ends = is_kept(p, place.diagonal + last * p.neighbours);
  if (!begins && !ends) return Unit{};
  return begins && ends ? *from : cut_unit(p, *from, place.diagonal);
}

template <class Unit, class Index>
__global__ void __launch_bounds__(element_threads) arrange_units(const ArrangeLaunch p, const Pointers x) {
  wait_for_previous();
  constexpr int count = units_per_thread<Unit>;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * element_threads * count + threadIdx.x;
  Unit units[count];
  std::int64_t output[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const std::int64_t unit = first + i * element_threads;
    if (unit >= p.count) break;
    const ArrangedPlace place = place_of(p, static_cast<Index>(unit));
    units[i] = arranged_unit<Unit>(p, x, place);
    output[i] = place.to;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (first + i * element_threads >= p.count) break;
    static_cast<Unit*>(x.output)[output[i]] = units[i];
  }
}

}  // namespace

cudaError_t launch(const ArrangeLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.count == 0) return cudaSuccess;
  return with_unit(launch.unit, [&](auto unit) {
    using Unit = decltype(unit);
    const auto kernel = launch.small ? arrange_units<Unit, std::int32_t> : arrange_units<Unit, std::int64_t>;
    return queue_overlapping(kernel, blocks_of_units<Unit>(launch.count), element_threads, launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
