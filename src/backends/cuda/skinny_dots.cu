#include "backends/cuda/skinny.cuh"

// b is contiguous along k. One, two, four or eight warps share a column of b: they walk k side by side, add up within
// each warp by shuffles and across warps in order, so the sum never depends on timing.

namespace xpuruntime::cuda {
namespace {

constexpr int block_warps = 8;

template <int rows>
__device__ void reduce_and_store(const SkinnyLaunch& p, const ProductPointers& x, float (&sums)[rows], int first_row) {
  __shared__ float partial[block_warps][rows];
  const int warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    for (int offset = 16; offset > 0; offset /= 2) sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
    if (threadIdx.x % 32 == 0) partial[warp][i] = sums[i];
  }
  __syncthreads();
  const int columns = block_warps / p.warps_per_dot;
  for (int o = threadIdx.x; o < columns * rows; o += blockDim.x) {
    const int column = blockIdx.x * columns + o % columns;
    const int row = first_row + o / columns;
    if (column >= p.n || row >= p.m) continue;
    float sum = 0;
    for (int w = 0; w < p.warps_per_dot; ++w) sum += partial[o % columns * p.warps_per_dot + w][o / columns];
    finish(p, x, row, column, sum);
  }
}

template <int rows>
inline constexpr int in_flight = rows > 4 ? 2 : 4;

template <class T, int rows, bool vector, bool whole>
__device__ void batch(const SkinnyLaunch& p, const T* a, const T* b, int first_row, int base, int step,
                      float (&sums)[rows]) {
  constexpr int wide = width<T, vector>;
  Chunk<T, vector> chunks[in_flight<rows>];
#pragma unroll
  for (int u = 0; u < in_flight<rows>; ++u) {
    if (whole || base + u * step < p.k) chunks[u].load_once(b + (base + u * step) * p.b.row);
  }
#pragma unroll
  for (int u = 0; u < in_flight<rows>; ++u) {
    const int at = base + u * step;
    if (!whole && at >= p.k) break;
    float y[wide];
    chunks[u].get(y);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      // Rows past the last repeat it: their sums are not stored.
      Chunk<T, vector> left;
      left.load_again(a + min(first_row + i, p.m - 1) * p.a.row + at * p.a.column);
      float x[wide];
      left.get(x);
#pragma unroll
      for (int j = 0; j < wide; ++j) sums[i] = fmaf(x[j], y[j], sums[i]);
    }
  }
}

template <class T, int rows, bool vector>
__device__ void dot(const SkinnyLaunch& p, const T* a, const T* b, int first_row, int slice, float (&sums)[rows]) {
  constexpr int wide = width<T, vector>;
  const int step = p.warps_per_dot * 32 * wide;
  int base = (slice * 32 + static_cast<int>(threadIdx.x % 32)) * wide;
  for (; base + (in_flight<rows> - 1) * step < p.k; base += in_flight<rows> * step) {
    batch<T, rows, vector, true>(p, a, b, first_row, base, step, sums);
  }
  batch<T, rows, vector, false>(p, a, b, first_row, base, step, sums);
}

template <class T, int rows, bool vector>
__global__ void __launch_bounds__(block_warps * 32) dots_kernel(const SkinnyLaunch p, const ProductPointers x) {
  wait_for_previous();
  const int warp = threadIdx.x / 32;
  const int column = blockIdx.x * (block_warps / p.warps_per_dot) + warp / p.warps_per_dot;
  const int first_row = blockIdx.y * rows;
  float sums[rows] = {};
  if (column < p.n) {
    dot<T, rows, vector>(p, static_cast<const T*>(x.a), static_cast<const T*>(x.b) + column * p.b.column, first_row,
                         warp % p.warps_per_dot, sums);
  }
  reduce_and_store<rows>(p, x, sums, first_row);
}

}  // namespace

cudaError_t launch_dots(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  const int columns = block_warps / launch.warps_per_dot;
  const dim3 grid((launch.n + columns - 1) / columns, (launch.m + launch.rows - 1) / launch.rows);
  return with_type_and_rows(launch, [&](auto element, auto rows) {
    using T = decltype(element);
    constexpr int count = decltype(rows)::get;
    const auto kernel = launch.vector ? dots_kernel<T, count, true> : dots_kernel<T, count, false>;
    return queue_overlapping(kernel, grid, block_warps * 32, launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
