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

/// Eight neighbours from any element on, of which the first `count` exist; the others become zero.
__device__ inline Eight load_any(const void* from, int count) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  const int before = static_cast<int>(address & 15) / 2;
  if (count >= (before == 0 ? 8 : 16 - before)) {  // all of both vectors exists
    const auto* vectors = reinterpret_cast<const uint4*>(address & ~std::uintptr_t{15});
    return shifted(__ldg(vectors), before > 0 ? __ldg(vectors + 1) : uint4{}, before);
  }
  Eight out = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (i < count)
      out.pairs[i / 2] |= static_cast<unsigned>(static_cast<const unsigned short*>(from)[i]) << (i % 2 * 16);
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
// warp on different banks.

template <int columns>
inline constexpr int sum_pitch = columns + 4;

template <bool along_k, int columns, int groups, int tiles>
__device__ inline void put_sums(float* slot, const Sums<groups, tiles>& sums) {
  constexpr int pitch = sum_pitch<columns>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int tile = 0; tile < tiles; ++tile) {
    float* at = slot + (8 * tile + lane % 4 * 2) * pitch + lane / 4 * (along_k ? 1 : 4);
    if constexpr (along_k) {
#pragma unroll
      for (int group = 0; group < groups; ++group, at += 16) {
        const float(&d)[4] = sums[group][tile];
        at[0] = d[0];
        at[pitch] = d[1];
        at[8] = d[2];
        at[8 + pitch] = d[3];
      }
    } else {
      static_assert(groups == 2, "four neighbouring columns of a thread");
      const float(&d)[4] = sums[0][tile];
      const float(&e)[4] = sums[1][tile];
      reinterpret_cast<float4&>(at[0]) = {d[0], d[2], e[0], e[2]};
      reinterpret_cast<float4&>(at[pitch]) = {d[1], d[3], e[1], e[3]};
    }
  }
}

// Blocks of a cluster read each other's shared memory. Before Hopper there are none: a split is 1.

inline constexpr int most_split = 8;

__device__ inline unsigned shared_address(const void* address) {
  return static_cast<unsigned>(__cvta_generic_to_shared(address));
}

__device__ inline void sync_blocks() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/// No block goes away while others read from it. What they stored need not be visible.
__device__ inline void leave_blocks() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
__device__ inline void wait_for_readers() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait;" ::: "memory");
#endif
}

__device__ inline float4 load_from_block(const float4* address, int rank) {
  float4 v = {};
#if __CUDA_ARCH__ >= 900
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(address)), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(there)
               : "memory");
#endif
  return v;
}

__device__ inline void add(float4& sum, const float4& v) { sum = {sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w}; }

/// A sum of all blocks, always in the same order.
__device__ inline float4 add_up(const float4* address, int split) {
  float4 parts[most_split];
#pragma unroll
  for (int block = 0; block < most_split; ++block) {
    if (block < split) parts[block] = load_from_block(address, block);
  }
  float4 sum = {};
#pragma unroll
  for (int block = 0; block < most_split; ++block) {
    if (block < split) add(sum, parts[block]);
  }
  return sum;
}

}  // namespace xpuruntime::cuda
