#include "backends/cuda/skinny.cuh"

// b is contiguous along n. A block owns a few columns, its threads stand `lanes` wide and walk k together; many rows of
// b are in flight at once. The sums of one column meet by shuffles within a warp, then across warps in order.

namespace xpuruntime::cuda {
namespace {

constexpr int block_warps = 16;
constexpr int block_threads = block_warps * 32;
constexpr int max_columns = 64;  // 128 bytes of 16-bit elements side by side

template <int rows>
inline constexpr int in_flight = rows > 4   ? 2
                                 : rows > 2 ? 4
                                            : 8;

template <class T, int rows, bool vector, bool whole>
__device__ void batch(const SkinnyLaunch& p, const T* a, const T* b, int first_row, int base, int step,
                      float (&sums)[rows][width<T, vector>]) {
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
      const float x = to_float(a[min(first_row + i, p.m - 1) * p.a.row + at * p.a.column]);
#pragma unroll
      for (int j = 0; j < wide; ++j) sums[i][j] = fmaf(x, y[j], sums[i][j]);
    }
  }
}

template <class T, int rows, bool vector>
__device__ void walk(const SkinnyLaunch& p, const T* a, const T* b, int first_row,
                     float (&sums)[rows][width<T, vector>]) {
  const int step = block_threads / p.lanes;
  int base = static_cast<int>(threadIdx.x) / p.lanes;
  for (; base + (in_flight<rows> - 1) * step < p.k; base += in_flight<rows> * step) {
    batch<T, rows, vector, true>(p, a, b, first_row, base, step, sums);
  }
  batch<T, rows, vector, false>(p, a, b, first_row, base, step, sums);
}

template <int rows, int wide>
__device__ void reduce_and_store(const SkinnyLaunch& p, const ProductPointers& x, float (&sums)[rows][wide],
                                 int first_row) {
  __shared__ float partial[block_warps][max_columns];
  const int lane = threadIdx.x % 32;
  const int block_columns = p.lanes * wide;
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    __syncthreads();  // the last row's sums have been read
#pragma unroll
    for (int j = 0; j < wide; ++j) {
      for (int offset = 16; offset >= p.lanes; offset /= 2) {
        sums[i][j] += __shfl_xor_sync(0xffffffffu, sums[i][j], offset);
      }
      if (lane < p.lanes) partial[threadIdx.x / 32][lane * wide + j] = sums[i][j];
    }
    __syncthreads();
    const int column = blockIdx.x * block_columns + threadIdx.x;
    if (threadIdx.x < block_columns && column < p.n && first_row + i < p.m) {
      float sum = 0;
      for (int w = 0; w < block_warps; ++w) sum += partial[w][threadIdx.x];
      finish(p, x, first_row + i, column, sum);
    }
  }
}

template <class T, int rows, bool vector>
__global__ void __launch_bounds__(block_threads) columns_kernel(const SkinnyLaunch p, const ProductPointers x) {
  wait_for_previous();
  constexpr int wide = width<T, vector>;
  const int lane = threadIdx.x % p.lanes;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * p.lanes + lane) * wide;
  const int first_row = blockIdx.y * rows;
  float sums[rows][wide] = {};
  if (column < p.n) {
    walk<T, rows, vector>(p, static_cast<const T*>(x.a), static_cast<const T*>(x.b) + column * p.b.column, first_row,
                          sums);
  }
  reduce_and_store<rows, wide>(p, x, sums, first_row);
}

}  // namespace

cudaError_t launch_columns(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  return with_type_and_rows(launch, [&](auto element, auto rows) {
    using T = decltype(element);
    constexpr int count = decltype(rows)::get;
    const int columns = launch.lanes * (launch.vector ? width<T, true> : 1);
    const dim3 grid((launch.n + columns - 1) / columns, (launch.m + launch.rows - 1) / launch.rows);
    const auto kernel = launch.vector ? columns_kernel<T, count, true> : columns_kernel<T, count, false>;
    return queue_overlapping(kernel, grid, block_threads, launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
