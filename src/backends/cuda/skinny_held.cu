#include "backends/cuda/skinny_mma.cuh"

// b is contiguous along k. Each block keeps all of its rows of a in registers and has columns of b stream past: what it
// loads next is asked for while it multiplies and adds up, and nothing but b is read again and again. The warps of a
// block share out k; columns are shared out evenly among the blocks.
//
// Columns need not begin on 16 bytes. Those that are `classes` apart begin at the same place within 16 bytes, so a
// block takes columns of one class, reads whole vectors of them and holds a moved by as many elements.

namespace xpuruntime::cuda {
namespace {

constexpr int most_threads = 512;
constexpr int most_warps = most_threads / 32;

/// The columns of a block: from `begin` to `end` of its class, `step` elements apart.
template <class T>
struct Share {
  const T* b;  // the vector in which the class's first column begins
  std::int64_t step;
  int first, classes;
  int begin, end;
  int last;   // the matrix's last column, if it is of the class: nothing is read behind it
  int shift;  // elements of the vector that come before the column

  __device__ Share(const SkinnyLaunch& p, const ProductPointers& x, bool vectors)
      : step(p.b.column), first(0), classes(1), shift(0) {
    int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x), count = p.n;
    b = static_cast<const T*>(x.b);
    if (!vectors) {
      classes = p.classes;
      first = block % classes;
      block /= classes;
      blocks /= classes;
      count = (p.n - first + classes - 1) / classes;
      b += first * step;
      step *= classes;
      shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(b) & 15) / 2;
      b -= shift;
    }
    last = (p.n - 1 - first) % classes == 0 ? count - 1 : -1;
    begin = static_cast<int>(static_cast<std::int64_t>(count) * block / blocks);
    end = static_cast<int>(static_cast<std::int64_t>(count) * (block + 1) / blocks);
  }
};

/// Zeros in place of the elements before k's 0 and after its last; the first of the eight is k number `at`.
__device__ inline uint4 inside(uint4 v, int at, int k) {
  if (at >= 0 && at + 8 <= k) return v;
  unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (at + 2 * i < 0 || at + 2 * i >= k) words[i] &= 0xffff0000u;
    if (at + 2 * i + 1 < 0 || at + 2 * i + 1 >= k) words[i] &= 0xffffu;
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Eight neighbours of a row of a, from k number `at` on, zeros where there are none.
template <bool vectors, class T>
__device__ inline uint4 load_row(const T* row, int at, int k) {
  if (at >= k) return {};
  if constexpr (vectors) return load_shared_by_blocks(row + at);
  if (at >= 0) return as_vector(load_any(row + at, k - at));
  unsigned words[4] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (at + i < 0 || at + i >= k) continue;
    words[i / 2] |= static_cast<unsigned>(reinterpret_cast<const unsigned short*>(row)[at + i]) << (i % 2 * 16);
  }
  return {words[0], words[1], words[2], words[3]};
}

/// Eight neighbours of a column of b, the first of which is k number `at`.
template <bool vectors, class T>
__device__ inline uint4 load_column(const T* from, int at, int k, bool last) {
  if (!vectors && last && at + 8 > k) return load_row<false>(from - at, at, k);
  return load_once(from);
}

/// On tensor cores. A warp has `pieces` neighbouring pieces of k, of which `window` are on their way.
template <class T, int tiles, int pieces, int window, bool vectors>
__global__ void __launch_bounds__(most_threads, 1) held_kernel(const SkinnyLaunch p, const ProductPointers x) {
  wait_for_previous();
  static_assert(pieces % window == 0, "a piece has the same place in the window for all columns");
  constexpr int columns = 8, pitch = columns + 4;
  constexpr int set_floats = most_warps * 8 * tiles * pitch;
  __shared__ float slots[2 * set_floats];
  const Share<T> share(p, x, vectors);
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  const int group = threadIdx.x % 32 / 4, part = threadIdx.x % 4;
  const int first_row = blockIdx.y * 8 * tiles;
  const int own = (warp * pieces * 4 + part) * 8;
  const int at = own - share.shift;  // the first k of the thread
  const T* from = share.b + (share.begin + group) * share.step + own;

  const auto load = [&](const T* line, int column, int piece_number) {
    const int from_k = at + piece_number * piece;
    if (column >= share.end || from_k >= p.k) return uint4{};
    return load_column<vectors>(line + piece_number * piece, from_k, p.k, column == share.last);
  };
  uint4 right[window], left[pieces][tiles];
#pragma unroll
  for (int i = 0; i < window; ++i) right[i] = load(from, share.begin + group, i);
#pragma unroll
  for (int i = 0; i < pieces; ++i) {
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      // Rows past the last repeat it: their sums are not stored.
      const T* row = static_cast<const T*>(x.a) + min(first_row + 8 * j + group, p.m - 1) * p.a.row;
      left[i][j] = load_row<vectors>(row, at + i * piece, p.k);
    }
  }

  int set = 0;
  for (int column = share.begin; column < share.end; column += columns) {
    const T* next = from + columns * share.step;
    constexpr int chains = tiles > 1 ? 1 : 2;  // sums that do not wait for each other
    float sums[chains][tiles][4] = {};
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      uint4 v = right[i % window];
      if constexpr (!vectors) v = inside(v, at + i * piece, p.k);
      const unsigned low[4] = {v.x, 0, v.y, 0}, high[4] = {v.z, 0, v.w, 0};
#pragma unroll
      for (int j = 0; j < tiles; ++j) {
        multiply<T>(sums[0][j], low, left[i][j].x, left[i][j].y);
        multiply<T>(sums[chains - 1][j], high, left[i][j].z, left[i][j].w);
      }
      right[i % window] = i + window < pieces ? load(from, column + group, i + window)
                                              : load(next, column + columns + group, i + window - pieces);
    }
    from = next;
    float* put = slots + set * set_floats + (warp * 8 * tiles + 2 * part) * pitch + group;
#pragma unroll
    for (int j = 0; j < tiles; ++j, put += 8 * pitch) {
      put[0] = sums[0][j][0] + (chains > 1 ? sums[chains - 1][j][0] : 0);
      put[pitch] = sums[0][j][1] + (chains > 1 ? sums[chains - 1][j][1] : 0);
    }
    __syncthreads();
    const int rows = min(8 * tiles, p.m - first_row);
    for (int o = threadIdx.x; o < rows * columns; o += blockDim.x) {
      if (column + o % columns >= share.end) continue;
      const float* parts = slots + set * set_floats + o / columns * pitch + o % columns;
      float sum = 0;
#pragma unroll 4
      for (int w = 0; w < warps; ++w) sum += parts[w * 8 * tiles * pitch];
      finish(p, x, first_row + o / columns, share.first + (column + o % columns) * share.classes, sum);
    }
    set ^= 1;
  }
}

/// One row of a by float32 arithmetic: `each` vectors of every column for each thread.
template <class T, int each, bool vectors>
__global__ void __launch_bounds__(most_threads, 1) lanes_kernel(const SkinnyLaunch p, const ProductPointers x) {
  wait_for_previous();
  constexpr int columns = 8 / each;  // at once
  __shared__ float slots[2][most_warps][columns];
  const Share<T> share(p, x, vectors);
  const int threads = blockDim.x, thread = threadIdx.x, lane = threadIdx.x % 32;
  const T* from = share.b + share.begin * share.step + thread * 8;

  const auto place = [&](int i) { return (i * threads + thread) * 8 - share.shift; };  // the first k of vector i
  uint4 right[columns][each];
  const auto load = [&](int column) {
#pragma unroll
    for (int u = 0; u < columns; ++u) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const T* vector = from + u * share.step + i * threads * 8;
        const bool exists = column + u < share.end && place(i) < p.k;
        right[u][i] = exists ? load_column<vectors>(vector, place(i), p.k, column + u == share.last) : uint4{};
      }
    }
  };
  load(share.begin);
  float left[each][8];
#pragma unroll
  for (int i = 0; i < each; ++i) {
    unpack<T>(load_row<vectors>(static_cast<const T*>(x.a), place(i), p.k), left[i]);
  }

  int set = 0;
  for (int column = share.begin; column < share.end; column += columns) {
    float sums[columns] = {};
#pragma unroll
    for (int u = 0; u < columns; ++u) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        float values[8];
        unpack<T>(vectors ? right[u][i] : inside(right[u][i], place(i), p.k), values);
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[u] = fmaf(left[i][j], values[j], sums[u]);
      }
    }
    from += columns * share.step;
    if (column + columns < share.end) load(column + columns);
      // Threads that are `bit` apart swap halves of their columns, until each has one.
#pragma unroll
    for (int step = 1; step < 4; ++step) {
      const int half = columns >> step, bit = 32 >> step;
      const bool upper = lane & bit;
#pragma unroll
      for (int u = 0; u < columns / 2; ++u) {
        if (u >= half) break;
        const float given = upper ? sums[u] : sums[u + half];
        const float kept = upper ? sums[u + half] : sums[u];
        sums[u] = kept + __shfl_xor_sync(0xffffffffu, given, bit);
      }
    }
    constexpr int sharing = 32 / columns;  // threads with the same column
#pragma unroll
    for (int offset = sharing / 2; offset > 0; offset /= 2) sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], offset);
    if (lane % sharing == 0) slots[set][thread / 32][lane / sharing] = sums[0];
    __syncthreads();
    if (thread < columns && column + thread < share.end) {
      float sum = 0;
#pragma unroll 4
      for (int w = 0; w < threads / 32; ++w) sum += slots[set][w][thread];
      finish(p, x, 0, share.first + (column + thread) * share.classes, sum);
    }
    set ^= 1;
  }
}

template <class T, int tiles, int pieces, int window>
cudaError_t start_held(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  const auto kernel =
      launch.vector ? held_kernel<T, tiles, pieces, window, true> : held_kernel<T, tiles, pieces, window, false>;
  const dim3 grid(launch.blocks, (launch.m + 8 * tiles - 1) / (8 * tiles));
  return queue_overlapping(kernel, grid, 32 * launch.warps, launch, pointers, stream);
}

template <class T>
cudaError_t held_of(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  const auto with = [&](auto start) { return start(launch, pointers, stream); };
  if (launch.pieces == 16) return with(start_held<T, 1, 16, 8>);
  if (launch.pieces == 10) return with(start_held<T, 1, 10, 10>);
  if (launch.pieces == 8) return launch.tile == 16 ? with(start_held<T, 2, 8, 8>) : with(start_held<T, 1, 8, 8>);
  if (launch.pieces == 4) return launch.tile == 16 ? with(start_held<T, 2, 4, 4>) : with(start_held<T, 1, 4, 4>);
  return launch.tile == 16 ? with(start_held<T, 2, 2, 2>) : with(start_held<T, 1, 2, 2>);
}

template <class T>
cudaError_t lanes_of(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  const auto with = [&](auto each) {
    constexpr int count = decltype(each)::get;
    const auto kernel = launch.vector ? lanes_kernel<T, count, true> : lanes_kernel<T, count, false>;
    return queue_overlapping(kernel, launch.blocks, 32 * launch.warps, launch, pointers, stream);
  };
  return launch.pieces == 1 ? with(Constant<1>{}) : launch.pieces == 2 ? with(Constant<2>{}) : with(Constant<4>{});
}

}  // namespace

cudaError_t launch_held(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  return launch.dtype == DataType::float16 ? held_of<f16>(launch, pointers, stream)
                                           : held_of<bf16>(launch, pointers, stream);
}

cudaError_t launch_lanes(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  return launch.dtype == DataType::float16 ? lanes_of<f16>(launch, pointers, stream)
                                           : lanes_of<bf16>(launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
