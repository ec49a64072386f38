#include "backends/cuda/skinny_mma.cuh"

// Each thread loads just what it feeds to the matrix units: no shared memory on the way, no shuffles, and nothing that
// waits for other warps. The warps of a block and the blocks of a cluster share out the pieces of k and add up in
// order.

namespace xpuruntime::cuda {
namespace {

template <int tiles>
inline constexpr int most_threads = tiles > 2 ? 256 : 512;

__device__ inline void prefetch(const void* address) { asm volatile("prefetch.global.L2 [%0];" : : "l"(address)); }

/// Pieces that a warp loads at once.
template <bool along_k, int tiles>
inline constexpr int in_flight = (along_k ? 4 : 2) / (tiles > 2 ? 2 : 1);

/// Where a thread's rows of a and columns of b begin. Rows and columns past the last repeat it: their sums are not
/// stored. `vectors`: 16 bytes each, all of whose elements exist or none.
template <class T, bool along_k, bool vectors, int tiles>
struct Walk {
  static constexpr int groups = along_k ? 1 : 2;
  static constexpr int columns = 16 * groups;

  const T* left[tiles];
  const T* right[along_k ? 2 : 1];
  std::int64_t step;  // along n: from k to k
  int wide;           // along n: columns that the thread has
  int k;

  __device__ Walk(const SkinnyLaunch& p, const Pointers& x, int first_column)
      : step(p.b.row), wide(2 * groups), k(p.k) {
    const int lane = threadIdx.x % 32;
    const int part = lane % 4 * 8;
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      left[j] = static_cast<const T*>(x.inputs[0]) + min(8 * j + lane / 4, p.m - 1) * p.a.row + part;
    }
    const T* b = static_cast<const T*>(x.inputs[1]);
    if constexpr (along_k) {
      right[0] = b + min(first_column + lane / 4, p.n - 1) * p.b.column + part;
      right[1] = b + min(first_column + lane / 4 + 8, p.n - 1) * p.b.column + part;
    } else {
      const int column = first_column + lane / 4 * wide;
      right[0] = b + min(column, p.n - 1) + part * step;
      wide = min(wide, p.n - column);
    }
  }

  /// `inside`: the piece does not reach past k.
  template <bool inside>
  __device__ Eight load_left(int row, int at) const {
    const int count = inside ? 8 : k - at - static_cast<int>(threadIdx.x % 4) * 8;
    if constexpr (vectors) return count > 0 ? as_eight(load_shared_by_blocks(left[row] + at)) : Eight{};
    return load_any(left[row] + at, count);
  }

  template <bool inside>
  __device__ Weights<along_k, groups> load_right(int at) const {
    Weights<along_k, groups> out;
    const int count = inside ? 8 : k - at - static_cast<int>(threadIdx.x % 4) * 8;
#pragma unroll
    for (int i = 0; i < (along_k ? 2 : 8); ++i) {
      if constexpr (along_k) {
        Eight v = {};
        if constexpr (!vectors) v = load_any(right[i] + at, count);
        if (vectors && count > 0) v = as_eight(load_once(right[i] + at));
#pragma unroll
        for (int j = 0; j < 4; ++j) out.words[i][j] = v.pairs[j];
      } else if constexpr (vectors) {
        const uint2 v = i < count && wide > 0 ? *reinterpret_cast<const uint2*>(right[0] + (at + i) * step) : uint2{};
        out.words[i][0] = v.x;
        out.words[i][1] = v.y;
      } else {
        const Eight v = load_any(right[0] + (at + i) * step, i < count ? wide : 0);
        out.words[i][0] = v.pairs[0];
        out.words[i][1] = v.pairs[1];
      }
    }
    return out;
  }

  /// Has the cache fetch what the warp loads next of b: every 32 bytes once.
  __device__ void prefetch_right(int at) const {
    const int group = threadIdx.x % 32 / 4;
    const int part = threadIdx.x % 4;
    if (along_k ? part % 2 != 0 : group % 4 != 0 || wide <= 0) return;
#pragma unroll
    for (int u = 0; u < in_flight<along_k, tiles>; ++u, at += piece) {
#pragma unroll
      for (int i = 0; i < (along_k ? 2 : 8); ++i) {
        if (at + part * 8 + (along_k ? 0 : i) >= k) break;
        prefetch(along_k ? right[along_k ? i : 0] + at : right[0] + (at + i) * step);
      }
    }
  }
};

template <bool inside, class T, bool along_k, bool vectors, int tiles>
__device__ void batch(const Walk<T, along_k, vectors, tiles>& walk, int base,
                      Sums<Walk<T, along_k, vectors, tiles>::groups, tiles>& sums) {
  constexpr int groups = Walk<T, along_k, vectors, tiles>::groups;
  constexpr int count = in_flight<along_k, tiles>;
  Weights<along_k, groups> right[count];
  Eight left[count][tiles];
#pragma unroll
  for (int u = 0; u < count; ++u) right[u] = walk.template load_right<inside>(base + u * piece);
#pragma unroll
  for (int u = 0; u < count; ++u) {
#pragma unroll
    for (int j = 0; j < tiles; ++j) left[u][j] = walk.template load_left<inside>(j, base + u * piece);
  }
#pragma unroll
  for (int u = 0; u < count; ++u) {
#pragma unroll
    for (int j = 0; j < tiles; ++j) multiply_tile<T, along_k, groups, tiles>(sums, j, right[u], left[u][j]);
  }
}

template <class T, bool along_k, bool vectors, int tiles>
__global__ void __launch_bounds__(most_threads<tiles>, 1) fragments_kernel(const SkinnyLaunch p, const Pointers x) {
  using Walk = Walk<T, along_k, vectors, tiles>;
  constexpr int length = piece * in_flight<along_k, tiles>;
  extern __shared__ float slots[];
  const int rank = blockIdx.x % p.split;
  const int first_column = blockIdx.x / p.split * Walk::columns;
  const int warps = blockDim.x / 32;
  const int warp = threadIdx.x / 32;
  const Walk walk(p, x, first_column);
  Sums<Walk::groups, tiles> sums = {};
  const int stride = p.split * warps * length;
  int base = (rank * warps + warp) * length;
  for (; base + length <= p.k; base += stride) {
    if (base + stride < p.k) walk.prefetch_right(base + stride);
    batch<true>(walk, base, sums);
  }
  if (base < p.k) batch<false>(walk, base, sums);
  meet_and_store<along_k, Walk::columns>(p, x, slots, sums, warps, warp, 0, first_column, rank);
}

template <class T, bool along_k, bool vectors, int tiles>
cudaError_t launch_as(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  constexpr int columns = Walk<T, along_k, vectors, tiles>::columns;
  const int warps = launch.warps < most_threads<tiles> / 32 ? launch.warps : most_threads<tiles> / 32;
  const int floats = slots_for<columns, tiles>(warps) * slot_floats<columns, tiles>;
  const unsigned clusters = (launch.n + columns - 1) / columns;
  const ClusterLaunch how(clusters, 32 * warps, 4 * floats, launch.split, stream);
  return queue_clusters<fragments_kernel<T, along_k, vectors, tiles>>(how, launch, pointers);
}

}  // namespace

cudaError_t launch_fragments(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_type_and_tiles(launch, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int tiles = decltype(count)::get;
    const auto start = launch.along_k
                           ? (launch.vector ? launch_as<T, true, true, tiles> : launch_as<T, true, false, tiles>)
                           : (launch.vector ? launch_as<T, false, true, tiles> : launch_as<T, false, false, tiles>);
    return start(launch, pointers, stream);
  });
}

cudaError_t launch(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.m == 0 || launch.n == 0) return cudaSuccess;
  switch (launch.path) {
    case SkinnyPath::fragments:
      return launch_fragments(launch, pointers, stream);
    case SkinnyPath::staged:
      return launch_staged(launch, pointers, stream);
    case SkinnyPath::held:
      return launch_held(launch, pointers, stream);
    case SkinnyPath::lanes:
      return launch_lanes(launch, pointers, stream);
    case SkinnyPath::dots:
      return launch_dots(launch, pointers, stream);
    default:
      return launch_columns(launch, pointers, stream);
  }
}

}  // namespace xpuruntime::cuda
