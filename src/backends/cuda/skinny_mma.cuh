#pragma once

#include "backends/cuda/skinny.cuh"

// The tensor cores' part of the skinny products. The columns of b are the rows of the matrix units' first operand, 16
// at a time, and the rows of a are their columns, 8 at a time, so that few rows leave little of a unit idle. Which of
// the units' k's is which does not matter as long as a and b agree. So thread t of each group of four takes eight
// neighbouring k's, 8 t and on, of the 32 of a piece, and feeds them as two products of 16 k's. Where b is contiguous
// along n, a thread takes neighbouring columns instead: which column is which row of the unit does not matter either.

namespace xpuruntime::cuda {

inline constexpr int piece = 32;  // k's that a warp takes in one step

/// Eight 16-bit elements.
struct Eight {
  unsigned pairs[4];
};

__device__ inline Eight as_eight(uint4 v) { return {{v.x, v.y, v.z, v.w}}; }
__device__ inline uint4 as_vector(const Eight& v) { return {v.pairs[0], v.pairs[1], v.pairs[2], v.pairs[3]}; }

/// Moves elements down by `count`, so that those `count` places on come first.
__device__ inline Eight shifted(const uint4& low, const uint4& high, int count) {
  unsigned words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = count & 4 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = count & 2 ? words[i + 1] : words[i];
  Eight out;
#pragma unroll
  for (int i = 0; i < 4; ++i) out.pairs[i] = count & 1 ? __funnelshift_r(words[i], words[i + 1], 16) : words[i];
  return out;
}

/// Eight neighbours from any element on, of which the first `count` exist; the others become zero. Only vectors of 16
/// bytes that hold an element that exists are read.
__device__ inline Eight load_any(const void* from, int count) {
  Eight out = {};
  if (count <= 0) return out;
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const auto* vectors = reinterpret_cast<const uint4*>(address & ~std::uintptr_t{15});
  const int before = static_cast<int>(address & 15) / 2;
  const uint4 low = __ldg(vectors);
  const uint4 high = before + min(count, 8) > 8 ? __ldg(vectors + 1) : uint4{};
  out = shifted(low, high, before);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (2 * i + 1 >= count) out.pairs[i] = 2 * i < count ? out.pairs[i] & 0xffffu : 0;
  }
  return out;
}

/// What a thread holds of b for one piece and 16 columns times `groups`: of each of its columns eight k's, or of each
/// of its eight k's as many pairs of columns as there are groups.
template <bool along_k, int groups>
struct Weights {
  unsigned words[along_k ? 2 * groups : 8][along_k ? 4 : groups];
};

/// Eight rows of a times `tiles`, by 16 columns of b times `groups`, as the matrix units leave them.
template <int groups, int tiles>
using Sums = float[groups][tiles][4];

template <class T>
__device__ inline void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (sizeof(T) == 2 && __is_same(T, f16)) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// The unit's operand of one group of columns: the first or second half of the piece.
template <bool along_k, int groups>
__device__ inline void operand(const Weights<along_k, groups>& w, int group, int half, unsigned (&out)[4]) {
  if constexpr (along_k) {
    out[0] = w.words[2 * group][2 * half];
    out[1] = w.words[2 * group + 1][2 * half];
    out[2] = w.words[2 * group][2 * half + 1];
    out[3] = w.words[2 * group + 1][2 * half + 1];
  } else {
    // Two k's of one column make a word: the low halves of two rows, and the high ones.
    out[0] = __byte_perm(w.words[4 * half][group], w.words[4 * half + 1][group], 0x5410);
    out[1] = __byte_perm(w.words[4 * half][group], w.words[4 * half + 1][group], 0x7632);
    out[2] = __byte_perm(w.words[4 * half + 2][group], w.words[4 * half + 3][group], 0x5410);
    out[3] = __byte_perm(w.words[4 * half + 2][group], w.words[4 * half + 3][group], 0x7632);
  }
}

/// A piece of all groups by eight rows of a.
template <class T, bool along_k, int groups, int tiles>
__device__ inline void multiply_tile(Sums<groups, tiles>& sums, int tile, const Weights<along_k, groups>& w,
                                     const Eight& left) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      unsigned right[4];
      operand(w, group, half, right);
      multiply<T>(sums[group][tile], right, left.pairs[2 * half], left.pairs[2 * half + 1]);
    }
  }
}

// Sums meet in shared memory: rows of a, each as long as the block's columns and some more that keep the threads of a
// warp on different banks. Warps that share columns have slots of their own there as far as there is room for them.

inline constexpr int sum_padding = 4;
template <int columns>
inline constexpr int sum_pitch = columns + sum_padding;
template <int columns, int tiles>
inline constexpr int slot_floats = 8 * tiles*(columns + sum_padding);

/// Slots for the warps that share columns: a power of two, as their number is.
template <int columns, int tiles>
__host__ __device__ constexpr int slots_for(int warps) {
  int slots = 1;
  while (slots < warps && 2 * slots * slot_floats<columns, tiles> <= 8192) slots *= 2;
  return slots;
}

__device__ inline void put(float& at, float value, bool add) { at = add ? at + value : value; }
__device__ inline void put(float4& at, float4 value, bool add) {
  const float4 old = add ? at : float4{};
  at = {old.x + value.x, old.y + value.y, old.z + value.z, old.w + value.w};
}

template <bool along_k, int columns, int groups, int tiles>
__device__ inline void put_sums(float* slot, const Sums<groups, tiles>& sums, bool add) {
  constexpr int pitch = sum_pitch<columns>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    float* at = slot + (8 * tile + lane % 4 * 2) * pitch + lane / 4 * (along_k ? 1 : 4);
    if constexpr (along_k) {
#pragma unroll
      for (int group = 0; group < groups; ++group, at += 16) {
        const float(&d)[4] = sums[group][tile];
        put(at[0], d[0], add);
        put(at[pitch], d[1], add);
        put(at[8], d[2], add);
        put(at[8 + pitch], d[3], add);
      }
    } else {
      static_assert(groups == 2, "four neighbouring columns of a thread");
      const float(&d)[4] = sums[0][tile];
      const float(&e)[4] = sums[1][tile];
      put(reinterpret_cast<float4&>(at[0]), {d[0], d[2], e[0], e[2]}, add);
      put(reinterpret_cast<float4&>(at[pitch]), {d[1], d[3], e[1], e[3]}, add);
    }
  }
}

// Blocks of a cluster read each other's shared memory. Before Hopper there are none: a split is 1.

inline constexpr int most_split = 8;

__device__ inline unsigned shared_address(const void* address) {
  return static_cast<unsigned>(__cvta_generic_to_shared(address));
}

__device__ inline void sync_blocks(int split) {
#if __CUDA_ARCH__ >= 900
  if (split > 1) {
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
    return;
  }
#endif
  __syncthreads();
}

__device__ inline float4 load_from_block(const float* address, int rank, int split) {
#if __CUDA_ARCH__ >= 900
  if (split > 1) {
    unsigned there;
    float4 v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(address)), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(there)
                 : "memory");
    return v;
  }
#endif
  return *reinterpret_cast<const float4*>(address);
}

/// Four neighbouring sums of all slots of all blocks, always in the same order.
__device__ inline void add_up(const float* first, int slots, int floats, int split, float (&sums)[4]) {
  for (int slot = 0; slot < slots; ++slot, first += floats) {
    float4 parts[most_split];
#pragma unroll
    for (int block = 0; block < most_split; ++block) {
      if (block < split) parts[block] = load_from_block(first, block, split);
    }
#pragma unroll
    for (int block = 0; block < most_split; ++block) {
      if (block >= split) break;
      sums[0] += parts[block].x;
      sums[1] += parts[block].y;
      sums[2] += parts[block].z;
      sums[3] += parts[block].w;
    }
  }
}

/// Adds up the sums of the `warps` warps that share columns, of which this is number `warp`, and those of the cluster's
/// blocks, and stores the outputs. All threads of the cluster take part. `first_column` is the block's; `own_column` is
/// where the warp's begin in it.
template <bool along_k, int columns, int groups, int tiles>
__device__ inline void meet_and_store(const SkinnyLaunch& p, const Pointers& x, float* slots,
                                      const Sums<groups, tiles>& sums, int warps, int warp, int own_column,
                                      int first_column, int rank) {
  constexpr int floats = slot_floats<columns, tiles>;
  const int count = slots_for<columns, tiles>(warps);
  for (int round = 0; round < warps; round += count) {
    if (round > 0) __syncthreads();
    if (warp >= round && warp < round + count) {
      put_sums<along_k, columns>(slots + (warp - round) * floats + own_column, sums, round > 0);
    }
  }
  sync_blocks(p.split);
  constexpr int quads = columns / 4;
  for (int o = rank * blockDim.x + threadIdx.x; o < p.m * quads; o += p.split * blockDim.x) {
    const int row = o / quads;
    const int column = o % quads * 4;
    if (first_column + column >= p.n) continue;
    float values[4] = {};
    add_up(slots + row * sum_pitch<columns> + column, count, floats, p.split, values);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first_column + column + i < p.n) finish(p, x, row, first_column + column + i, values[i]);
    }
  }
  if (p.split > 1) sync_blocks(p.split);  // none goes on, or away, while others read
}

/// How a kernel is launched in clusters of `split` blocks.
struct ClusterLaunch {
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute = {};

  ClusterLaunch(unsigned clusters, unsigned threads, std::uint64_t shared_bytes, int split, cudaStream_t stream) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(split);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    config.gridDim = dim3(clusters * static_cast<unsigned>(split));
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = split > 1 ? 1 : 0;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;
};

template <void (*kernel)(SkinnyLaunch, Pointers)>
cudaError_t queue_clusters(const ClusterLaunch& how, const SkinnyLaunch& launch, const Pointers& pointers) {
  SkinnyLaunch first = launch;
  Pointers second = pointers;
  void* arguments[] = {&first, &second};
  return cudaLaunchKernelExC(&how.config, reinterpret_cast<const void*>(kernel), arguments);
}

/// Calls `use` with the element type and the number of eights of rows as types: 1, 2, 4 or 8.
template <class Use>
cudaError_t with_type_and_tiles(const SkinnyLaunch& launch, Use&& use) {
  const int rows = launch.m > 32 ? 8 : launch.m > 16 ? 4 : launch.m > 8 ? 2 : 1;
  return launch.dtype == DataType::float16 ? with_rows<f16>(rows, use) : with_rows<bf16>(rows, use);
}

}  // namespace xpuruntime::cuda
