#include "backends/cuda/losses.cuh"

namespace xpuruntime::cuda {
namespace {

constexpr int sum_threads = 512;

/// Sums that are in the workspace: the parts, or what blocks made of them.
struct SumLaunch {
  LossOutput output = {};
  int blocks = 0;
};

__device__ LossSum sum_of(const LossSum* parts, std::int64_t count) {
  wait_for_previous();
  LossSum sum;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) sum.add(parts[i]);
  return sum_over_block(sum);
}

__global__ void __launch_bounds__(sum_threads) partial_sums(const SumLaunch p, const Pointers x) {
  const LossSum sum = sum_of(losses_in(x.workspace), p.output.parts);
  if (threadIdx.x == 0) static_cast<LossSum*>(x.workspace)[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(sum_threads) total_sum(const SumLaunch p, const Pointers x) {
  const LossSum sum = p.blocks > 0 ? sum_of(static_cast<const LossSum*>(x.workspace), p.blocks)
                                   : sum_of(losses_in(x.workspace), p.output.parts);
  if (threadIdx.x != 0) return;
  const double divisor = p.output.divisor == 0 ? sum.weight : p.output.divisor;
  store_float(x.output, p.output.dtype, 0, static_cast<float>(sum.loss / divisor));
}

/// t log(t) - t + log(2 pi t) / 2 for t > 1, else 0.
__device__ inline float stirling(float t) {
  if (!(t > 1)) return 0;
  const float log_t = logf(t);
  return fmaf(t, log_t, -t) + fmaf(log_t, 0.5f, 0.918938533f);
}

__device__ inline float loss_of(const PointwiseLossLaunch& p, PointwiseLoss kind, float x, float t) {
  switch (kind) {
    case PointwiseLoss::divergence:  // 0 log 0 is 0
      return t * ((t == 0 ? 0 : logf(t)) - x);
    case PointwiseLoss::divergence_of_logs:
      return expf(t) * (t - x);
    case PointwiseLoss::poisson:
      return fmaf(-t, logf(x + static_cast<float>(p.terms.eps)), x) + (p.terms.full ? stirling(t) : 0);
    default:
      return fmaf(-t, x, expf(x)) + (p.terms.full ? stirling(t) : 0);
  }
}

/// 16 bytes at a time where each operand is one run of memory. Each kind is a kernel of its own: before the loads
/// little may be computed.
template <class T, PointwiseLoss kind>
__global__ void __launch_bounds__(element_threads) pointwise_losses(const PointwiseLossLaunch p, const Pointers x) {
  constexpr int width = per_vector<T>;
  const std::int64_t vectors = p.shape.contiguous ? p.shape.count / width : 0;
  LossSum sum;
  for (std::int64_t i = thread_index(); i < vectors; i += thread_count()) {
    Vector<T> values = load_operand<T>(x.inputs[0], i * width, false);
    const Vector<T> targets = load_operand<T>(x.inputs[1], i * width, false);
    float part = 0;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const float loss = loss_of(p, kind, to_float(values.values[j]), to_float(targets.values[j]));
      values.values[j] = from_float<T>(loss);
      part += loss;
    }
    if (!p.output.reduced) *reinterpret_cast<Vector<T>*>(static_cast<T*>(x.output) + i * width) = values;
    sum.loss += part;
  }
  for (std::int64_t i = vectors * width + thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    const float target = p.target == p.dtype ? to_float(static_cast<const T*>(x.inputs[1])[at.second])
                                             : static_cast<float>(load_index(x.inputs[1], p.target, at.second));
    const float loss = loss_of(p, kind, to_float(static_cast<const T*>(x.inputs[0])[at.first]), target);
    if (!p.output.reduced) store_float(x.output, p.output.dtype, at.output, loss);
    sum.loss += loss;
  }
  store_part(p.output, x, sum);
}

template <class T>
auto kernel_of(PointwiseLoss kind) {
  switch (kind) {
    case PointwiseLoss::divergence:
      return pointwise_losses<T, PointwiseLoss::divergence>;
    case PointwiseLoss::divergence_of_logs:
      return pointwise_losses<T, PointwiseLoss::divergence_of_logs>;
    case PointwiseLoss::poisson:
      return pointwise_losses<T, PointwiseLoss::poisson>;
    default:
      return pointwise_losses<T, PointwiseLoss::poisson_of_logs>;
  }
}

}  // namespace

std::uint64_t loss_bytes(const LossOutput& output) {
  if (!output.reduced) return 0;
  return sizeof(LossSum) * (most_sum_blocks + static_cast<std::uint64_t>(output.parts));
}

cudaError_t launch_sum(const LossOutput& output, const Pointers& pointers, cudaStream_t stream) {
  constexpr std::int64_t of_one_block = 16 * sum_threads;
  if (!output.reduced) return cudaSuccess;
  SumLaunch launch{output};
  if (output.parts > of_one_block) {
    const std::int64_t blocks = (output.parts - 1) / of_one_block + 1;
    launch.blocks = static_cast<int>(blocks < most_sum_blocks ? blocks : most_sum_blocks);
    const cudaError_t error =
        queue_overlapping(partial_sums, static_cast<unsigned>(launch.blocks), sum_threads, launch, pointers, stream);
    if (error != cudaSuccess) return error;
  }
  return queue_overlapping(total_sum, 1, sum_threads, launch, pointers, stream);
}

cudaError_t launch(const PointwiseLossLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count > 0) {
    const cudaError_t error = with_type(launch.dtype, [&](auto element) {
      return queue(kernel_of<decltype(element)>(launch.terms.kind), static_cast<unsigned>(launch.output.parts),
                   element_threads, launch, pointers, stream);
    });
    if (error != cudaSuccess) return error;
  }
  return launch_sum(launch.output, pointers, stream);
}

}  // namespace xpuruntime::cuda
