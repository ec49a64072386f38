#include "backends/cuda/losses.cuh"
#include "backends/cuda/rows.cuh"

// One pass over the scores, or over those of the targets alone.

namespace xpuruntime::cuda {
namespace {

template <class T>
__device__ float load_weight(const ClassTargets& p, const Pointers& x, std::int64_t target) {
  if (x.inputs[2] == nullptr) return 1;
  if (p.weight == DataType::float32) return static_cast<const float*>(x.inputs[2])[target];
  return to_float(static_cast<const T*>(x.inputs[2])[target]);
}

/// A target, which need not be a class.
struct Target {
  std::int64_t target;
  bool counts;

  /// `there`: whether it is read.
  __device__ Target(const ClassTargets& p, const Pointers& x, std::int64_t at, bool there = true)
      : target(there ? load_index(x.inputs[1], p.dtype, at) : p.ignore_index),
        counts(target != p.ignore_index && target >= 0 && target < p.classes) {}

  /// `surprise` is minus the logarithm of the target's probability. T is the scores' type.
  template <class T>
  __device__ void finish(const ClassTargets& p, const LossOutput& output, const Pointers& x, float surprise,
                         std::int64_t at, LossSum& sum) const {
    float loss = 0, weight = 0;
    if (counts) {
      weight = load_weight<T>(p, x, target);
      loss = weight * surprise;
    } else if (target != p.ignore_index) {
      *static_cast<volatile std::uint32_t*>(x.fault) = 1;
      if (!output.reduced) return;
      loss = weight = nanf("");
    }
    if (!output.reduced) store_float(x.output, output.dtype, at, loss);
    sum.add({loss, weight});
  }
};

/// The scores of a row, and which of them counts.
template <class T>
struct Scores : Target {
  const T* data;
  std::int64_t row;
  bool there;

  __device__ Scores(const CrossEntropyLaunch& p, const Pointers& x, std::int64_t at)
      : Target(p.targets, x, at * p.target_stride, at < p.shape.rows), row(at), there(at < p.shape.rows) {
    data = static_cast<const T*>(x.inputs[0]) + (there ? row * p.shape.input_stride : 0);
  }
  __device__ float wanted() const { return counts ? to_float(data[target]) : 0; }

  /// To be called by one thread of the row.
  __device__ void finish(const CrossEntropyLaunch& p, const Pointers& x, const Exponentials& e, float wanted,
                         LossSum& sum) const {
    const float surprise = logf(e.sum) - (wanted - e.highest);
    Target::finish<T>(p.targets, p.output, x, surprise, row * p.shape.output_stride, sum);
  }
};

/// A part for each row. Rows that do not count are not read.
template <class T>
__global__ void __launch_bounds__(512, 2) row_losses(const CrossEntropyLaunch p, const Pointers x) {
  __shared__ float2 shared[Exponentials::most_warps];
  const Place place = place_in(p.team);
  const Scores<T> scores(p, x, place.row);
  const RowCut<T> cut = cut_row(scores.data, scores.counts ? p.shape.columns : 0);
  Exponentials e;
  e.add(load_edge(scores.data, cut, place.lane, -HUGE_VALF));
  walk_row(scores.data, cut, place, -HUGE_VALF, [&](auto& vectors, int) { e.add<T>(vectors); });
  e.fold(place, shared);
  if (place.lane != 0 || !scores.there) return;
  LossSum sum;
  scores.finish(p, x, e, scores.wanted(), sum);
  if (p.output.reduced) losses_in(x.workspace)[place.row] = sum;
}

/// Rows that a part of a warp holds. Teams go from row to row.
template <class T, int held>
__global__ void __launch_bounds__(RowTeam::block_threads, 8)
    short_row_losses(const CrossEntropyLaunch p, const Pointers x) {
  __shared__ LossSum sums[RowTeam::block_threads];
  const Place place = place_in(p.team);
  const std::int64_t each = RowTeam::block_threads / place.lanes, step = each * gridDim.x;
  LossSum sum;
  for (std::int64_t row = place.row, first = each * blockIdx.x; first < p.shape.rows; row += step, first += step) {
    const Scores<T> scores(p, x, row);
    const RowCut<T> cut = cut_row(scores.data, scores.there ? p.shape.columns : 0);
    uint4 vectors[held];
    load_vectors(scores.data, cut, place.lane, place.lanes, -HUGE_VALF, vectors);
    const float edge = load_edge(scores.data, cut, place.lane, -HUGE_VALF), wanted = scores.wanted();
    Exponentials e;
    e.highest = fold_in_warp(fmaxf(edge, largest_of<T>(vectors)), Larger{}, place.lanes);
    e.sum = exp_below_0(edge - e.base());
    e.add_below<T>(vectors);
    e.sum = fold_in_warp(e.sum, Add{}, place.lanes);
    if (place.lane == 0 && scores.there) scores.finish(p, x, e, wanted, sum);
  }
  if (!p.output.reduced) return;
  if (place.lane == 0) sums[threadIdx.x / place.lanes] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < each; ++i) sum.add(sums[i]);
  losses_in(x.workspace)[blockIdx.x] = sum;
}

/// A target at a time, in any layout.
template <class T>
__global__ void __launch_bounds__(element_threads) nll_losses(const NllLossLaunch p, const Pointers x) {
  LossSum sum;
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    const Target target(p.targets, x, at.second);
    const T* scores = static_cast<const T*>(x.inputs[0]) + at.first;
    const float score = target.counts ? to_float(scores[target.target * p.class_stride]) : 0;
    target.finish<T>(p.targets, p.output, x, -score, at.output, sum);
  }
  store_part(p.output, x, sum);
}

template <class T>
cudaError_t launch_rows(const CrossEntropyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const int held = launch.team.held;
  const auto kernel = held == 0   ? row_losses<T>
                      : held == 1 ? short_row_losses<T, 1>
                      : held == 4 ? short_row_losses<T, 4>
                                  : short_row_losses<T, 8>;
  const std::int64_t blocks = held == 0 ? launch.team.blocks_for(launch.shape.rows) : launch.output.parts;
  return queue(kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(launch.team.threads()), launch, pointers,
               stream);
}

}  // namespace

cudaError_t launch(const CrossEntropyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.rows > 0) {
    const cudaError_t error =
        with_type(launch.dtype, [&](auto element) { return launch_rows<decltype(element)>(launch, pointers, stream); });
    if (error != cudaSuccess) return error;
  }
  return launch_sum(launch.output, pointers, stream);
}

cudaError_t launch(const NllLossLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count > 0) {
    const cudaError_t error = with_type(launch.dtype, [&](auto element) {
      return queue(nll_losses<decltype(element)>, static_cast<unsigned>(launch.output.parts), element_threads, launch,
                   pointers, stream);
    });
    if (error != cudaSuccess) return error;
  }
  return launch_sum(launch.output, pointers, stream);
}

}  // namespace xpuruntime::cuda
