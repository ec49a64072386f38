#include "backends/cuda/rows.cuh"

// One pass over the scores; the losses of the rows are then summed in a fixed order, in float64.

namespace xpuruntime::cuda {
namespace {

constexpr int sum_threads = 512;
constexpr int most_sum_blocks = 128;

struct LossSum {
  double loss = 0;
  double weight = 0;

  __device__ void add(const LossSum& other) {
    loss += other.loss;
    weight += other.weight;
  }
};

template <class T>
__device__ float load_weight(const CrossEntropyLaunch& p, const Pointers& x, std::int64_t target) {
  if (x.inputs[2] == nullptr) return 1;
  if (p.weight == DataType::float32) return static_cast<const float*>(x.inputs[2])[target];
  return to_float(static_cast<const T*>(x.inputs[2])[target]);
}

/// What row_losses or short_row_losses leave behind.
__device__ LossSum* losses_in(void* workspace) { return static_cast<LossSum*>(workspace) + most_sum_blocks; }

/// The scores of a row, and which of them counts.
template <class T>
struct Scores {
  const T* data;
  std::int64_t row, target;
  bool there, counts;

  __device__ Scores(const CrossEntropyLaunch& p, const Pointers& x, std::int64_t at)
      : row(at), there(at < p.shape.rows) {
    data = static_cast<const T*>(x.inputs[0]) + (there ? row * p.shape.input_stride : 0);
    target = there ? load_index(x.inputs[1], p.target, row * p.target_stride) : p.ignore_index;
    counts = target != p.ignore_index && target >= 0 && target < p.shape.columns;
  }
  __device__ float wanted() const { return counts ? to_float(data[target]) : 0; }

  /// To be called by one thread of the row.
  __device__ void finish(const CrossEntropyLaunch& p, const Pointers& x, const Exponentials& e, float wanted,
                         LossSum& sum) const {
    float loss = 0, weight = 0;
    if (counts) {
      weight = load_weight<T>(p, x, target);
      loss = weight * (logf(e.sum) - (wanted - e.highest));
    } else if (target != p.ignore_index) {
      *static_cast<volatile std::uint32_t*>(x.fault) = 1;
      if (p.reduction == LossReduction::none) return;
      loss = weight = nanf("");
    }
    if (p.reduction == LossReduction::none) store_float(x.output, p.output, row * p.shape.output_stride, loss);
    sum.add({loss, weight});
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
  if (p.reduction != LossReduction::none) losses_in(x.workspace)[place.row] = sum;
}

/// Rows that a warp or a part of it holds. Teams go from row to row, with the next one on its way.
template <class T, int held>
struct ShortRow : Scores<T> {
  RowCut<T> cut;
  uint4 vectors[held];
  float edge;

  __device__ ShortRow(const CrossEntropyLaunch& p, const Pointers& x, const Place& place, std::int64_t row)
      : Scores<T>(p, x, row) {
    cut = cut_row(this->data, this->there ? p.shape.columns : 0);
    load_vectors(this->data, cut, place.lane, place.lanes, -HUGE_VALF, vectors);
    edge = load_edge(this->data, cut, place.lane, -HUGE_VALF);
  }
};

template <class T, int held>
__global__ void __launch_bounds__(RowTeam::block_threads, 8)
    short_row_losses(const CrossEntropyLaunch p, const Pointers x) {
  __shared__ LossSum sums[RowTeam::block_threads];
  const Place place = place_in(p.team);
  const std::int64_t each = RowTeam::block_threads / place.lanes, step = each * gridDim.x;
  LossSum sum;
  ShortRow<T, held> row(p, x, place, place.row);
  for (std::int64_t first = each * blockIdx.x; first < p.shape.rows; first += step) {
    const ShortRow<T, held> next(p, x, place, row.row + step);
    const float wanted = row.wanted();
    Exponentials e;
    e.highest = fold_in_warp(fmaxf(row.edge, largest_of<T>(row.vectors)), Larger{}, place.lanes);
    e.sum = exp_below_0(row.edge - e.base());
    e.add_below<T>(row.vectors);
    e.sum = fold_in_warp(e.sum, Add{}, place.lanes);
    if (place.lane == 0 && row.there) row.finish(p, x, e, wanted, sum);
    row = next;
  }
  if (p.reduction == LossReduction::none) return;
  if (place.lane == 0) sums[threadIdx.x / place.lanes] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < each; ++i) sum.add(sums[i]);
  losses_in(x.workspace)[blockIdx.x] = sum;
}

__device__ LossSum sum_over_block(LossSum sum) {
  __shared__ LossSum partial[sum_threads / 32];
  for (int offset = 16; offset > 0; offset /= 2) {
    sum.add({__shfl_xor_sync(0xffffffffu, sum.loss, offset), __shfl_xor_sync(0xffffffffu, sum.weight, offset)});
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = {};
  for (const LossSum& part : partial) sum.add(part);
  return sum;
}

__device__ LossSum sum_of(const LossSum* parts, std::int64_t count) {
  LossSum sum;
  const auto step = static_cast<std::int64_t>(gridDim.x * blockDim.x);
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) sum.add(parts[i]);
  return sum_over_block(sum);
}

__global__ void __launch_bounds__(sum_threads) partial_sums(const CrossEntropyLaunch p, const Pointers x) {
  const LossSum sum = sum_of(losses_in(x.workspace), p.parts);
  if (threadIdx.x == 0) static_cast<LossSum*>(x.workspace)[blockIdx.x] = sum;
}

/// Of all parts, or of as many partial sums as `team.held` says.
__global__ void __launch_bounds__(sum_threads) total_sum(const CrossEntropyLaunch p, const Pointers x) {
  const LossSum sum = p.team.held > 0 ? sum_of(static_cast<const LossSum*>(x.workspace), p.team.held)
                                      : sum_of(losses_in(x.workspace), p.parts);
  if (threadIdx.x != 0) return;
  const double loss = p.reduction == LossReduction::mean ? sum.loss / sum.weight : sum.loss;
  store_float(x.output, p.output, 0, static_cast<float>(loss));
}

cudaError_t launch_sums(CrossEntropyLaunch launch, const Pointers& pointers, cudaStream_t stream) {
  constexpr std::int64_t of_one_block = 16 * sum_threads;
  launch.team.held = 0;
  if (launch.parts > of_one_block) {
    const std::int64_t blocks = (launch.parts - 1) / of_one_block + 1;
    launch.team.held = static_cast<int>(blocks < most_sum_blocks ? blocks : most_sum_blocks);
    const cudaError_t error =
        queue(partial_sums, static_cast<unsigned>(launch.team.held), sum_threads, launch, pointers, stream);
    if (error != cudaSuccess) return error;
  }
  return queue(total_sum, 1, sum_threads, launch, pointers, stream);
}

template <class T>
cudaError_t launch_rows(const CrossEntropyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const int held = launch.team.held;
  const auto kernel = held == 0 ? row_losses<T> : held == 1 ? short_row_losses<T, 1> : short_row_losses<T, 4>;
  const std::int64_t blocks = held == 0 ? launch.team.blocks_for(launch.shape.rows) : launch.parts;
  return queue(kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(launch.team.threads()), launch, pointers,
               stream);
}

}  // namespace

std::uint64_t loss_bytes(const CrossEntropyLaunch& launch) {
  if (launch.reduction == LossReduction::none) return 0;
  return sizeof(LossSum) * (most_sum_blocks + static_cast<std::uint64_t>(launch.parts));
}

cudaError_t launch(const CrossEntropyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.rows > 0) {
    const cudaError_t error =
        with_type(launch.dtype, [&](auto element) { return launch_rows<decltype(element)>(launch, pointers, stream); });
    if (error != cudaSuccess) return error;
  }
  return launch.reduction == LossReduction::none ? cudaSuccess : launch_sums(launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
