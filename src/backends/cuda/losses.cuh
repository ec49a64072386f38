#pragma once

#include "backends/cuda/elementwise.cuh"

// Kernels that reduce leave sums of losses in the workspace, which launch_sum adds up.

namespace xpuruntime::cuda {

inline constexpr int most_sum_blocks = 128;

struct LossSum {
  double loss = 0;
  double weight = 0;

  __device__ void add(const LossSum& other) {
    loss += other.loss;
    weight += other.weight;
  }
};

/// The parts, behind what launch_sum makes of them.
__device__ inline LossSum* losses_in(void* workspace) { return static_cast<LossSum*>(workspace) + most_sum_blocks; }

/// Of blocks of whole warps; all threads get the sum.
__device__ inline LossSum sum_over_block(LossSum sum) {
  __shared__ LossSum partial[32];
  for (int offset = 16; offset > 0; offset /= 2) {
    sum.add({__shfl_xor_sync(0xffffffffu, sum.loss, offset), __shfl_xor_sync(0xffffffffu, sum.weight, offset)});
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = {};
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum.add(partial[warp]);
  return sum;
}

/// The block's part, where losses are reduced. All of its threads come here.
__device__ inline void store_part(const LossOutput& output, const Pointers& x, const LossSum& sum) {
  if (!output.reduced) return;
  const LossSum whole = sum_over_block(sum);
  if (threadIdx.x == 0) losses_in(x.workspace)[blockIdx.x] = whole;
}

}  // namespace xpuruntime::cuda
