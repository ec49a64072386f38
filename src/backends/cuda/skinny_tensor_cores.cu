#include "backends/cuda/skinny.cuh"

// b is contiguous along k, a and b hold 16-bit floats. The matrix units take a 16x16 piece of a and a 16x8 piece of b;
// which of the sixteen k's is which does not matter as long as a and b agree. So each thread loads 16 bytes, eight
// neighbouring k's of its row of a and its column of b, and feeds them as two pieces: no shared memory, no shuffles.
// The warps of a block split k and add up in order.

namespace xpuruntime::cuda {
namespace {

constexpr int max_warps = 16;
constexpr int piece = 32;  // k's that a warp takes in one step: four threads, eight each

__device__ inline void multiply(const f16*, float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void multiply(const bf16*, float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Both pieces of one step: the first halves of the loaded vectors, then the second.
template <class T>
__device__ void multiply_step(float (&sums)[4], uint4 a_low, uint4 a_high, uint4 b) {
  const T* type = nullptr;
  multiply(type, sums, {a_low.x, a_high.x, a_low.y, a_high.y}, b.x, b.y);
  multiply(type, sums, {a_low.z, a_high.z, a_low.w, a_high.w}, b.z, b.w);
}

/// `tall`: rows 8 to 15 are there too, and a block takes 16 columns instead of 8 to make up for reading more of a.
template <bool tall>
struct Tile {
  static constexpr int count = tall ? 2 : 1;  // pieces of 8 columns
  static constexpr int in_flight = tall ? 2 : 4;
};

/// Where a thread's rows of a and columns of b begin. Those past the last repeat it: their sums are not stored.
template <class T, bool tall>
struct Walk {
  const T* low;
  const T* high;
  const T* right[Tile<tall>::count];

  __device__ Walk(const SkinnyLaunch& p, const Pointers& x) {
    const int group = threadIdx.x % 32 / 4;
    const int part = threadIdx.x % 4 * 8;
    low = static_cast<const T*>(x.inputs[0]) + min(group, p.m - 1) * p.a.row + part;
    high = static_cast<const T*>(x.inputs[0]) + min(group + 8, p.m - 1) * p.a.row + part;
    const int column = blockIdx.x * 8 * Tile<tall>::count + group;
#pragma unroll
    for (int t = 0; t < Tile<tall>::count; ++t) {
      right[t] = static_cast<const T*>(x.inputs[1]) + min(column + t * 8, p.n - 1) * p.b.column + part;
    }
  }
};

template <class T, bool tall, bool whole>
__device__ void batch(const Walk<T, tall>& walk, int base, int k, float (&sums)[Tile<tall>::count][4]) {
  constexpr int tiles = Tile<tall>::count;
  constexpr int in_flight = Tile<tall>::in_flight;
  const uint4 zero = {0, 0, 0, 0};
  uint4 right[in_flight][tiles], low[in_flight], high[in_flight];
#pragma unroll
  for (int u = 0; u < in_flight; ++u) {
    const int at = base + u * piece;
    const bool inside = whole || at + static_cast<int>(threadIdx.x % 4) * 8 < k;
#pragma unroll
    for (int t = 0; t < tiles; ++t) right[u][t] = inside ? load_once(walk.right[t] + at) : zero;
    low[u] = inside ? load_shared_by_blocks(walk.low + at) : zero;
    high[u] = tall && inside ? load_shared_by_blocks(walk.high + at) : zero;
  }
#pragma unroll
  for (int u = 0; u < in_flight; ++u) {
#pragma unroll
    for (int t = 0; t < tiles; ++t) multiply_step<T>(sums[t], low[u], high[u], right[u][t]);
  }
}

template <class T, bool tall>
__device__ void accumulate(const SkinnyLaunch& p, const Pointers& x, float (&sums)[Tile<tall>::count][4]) {
  constexpr int length = piece * Tile<tall>::in_flight;
  const Walk<T, tall> walk(p, x);
  const int stride = blockDim.x / 32 * length;
  int base = threadIdx.x / 32 * length;
  for (; base + length <= p.k; base += stride) batch<T, tall, true>(walk, base, p.k, sums);
  if (base < p.k) batch<T, tall, false>(walk, base, p.k, sums);
}

template <class T, bool tall>
__global__ void __launch_bounds__(max_warps * 32) tensor_core_kernel(const SkinnyLaunch p, const Pointers x) {
  constexpr int tiles = Tile<tall>::count;
  constexpr int columns = 8 * tiles;
  __shared__ float4 partial[max_warps][tiles][32];
  float sums[tiles][4] = {};
  accumulate<T, tall>(p, x, sums);
#pragma unroll
  for (int t = 0; t < tiles; ++t) {
    partial[threadIdx.x / 32][t][threadIdx.x % 32] = make_float4(sums[t][0], sums[t][1], sums[t][2], sums[t][3]);
  }
  __syncthreads();
  const int warps = blockDim.x / 32;
  for (int o = threadIdx.x; o < p.m * columns; o += blockDim.x) {
    const int row = o / columns;
    const int column = o % columns;
    if (blockIdx.x * columns + column >= p.n) continue;
    // Where the matrix unit left this element: thread and place within its four sums.
    const int thread = row % 8 * 4 + column % 8 / 2;
    const int place = row / 8 * 2 + column % 2;
    float sum = 0;
    for (int w = 0; w < warps; ++w) sum += reinterpret_cast<const float*>(&partial[w][column / 8][thread])[place];
    const std::int64_t target = row * p.c.row + (blockIdx.x * columns + column) * p.c.column;
    store_float(x.output, p.output, target, sum);
  }
}

}  // namespace

cudaError_t launch_tensor_cores(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const bool tall = launch.m > 8;
  const int columns = tall ? 16 : 8;
  const dim3 grid((launch.n + columns - 1) / columns);
  const unsigned threads = launch.warps * 32;
  if (launch.dtype == DataType::float16) {
    const auto kernel = tall ? tensor_core_kernel<f16, true> : tensor_core_kernel<f16, false>;
    return queue(kernel, grid, threads, launch, pointers, stream);
  }
  const auto kernel = tall ? tensor_core_kernel<bf16, true> : tensor_core_kernel<bf16, false>;
  return queue(kernel, grid, threads, launch, pointers, stream);
}

cudaError_t launch(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.m == 0 || launch.n == 0) return cudaSuccess;
  switch (launch.path) {
    case SkinnyPath::tensor_cores:
      return launch_tensor_cores(launch, pointers, stream);
    case SkinnyPath::dots:
      return launch_dots(launch, pointers, stream);
    default:
      return launch_columns(launch, pointers, stream);
  }
}

}  // namespace xpuruntime::cuda
