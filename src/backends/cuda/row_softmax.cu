#include "backends/cuda/rows.cuh"

namespace xpuruntime::cuda {
namespace {

/// What a row's elements become, once its largest one and the sum of exponentials are known.
template <bool logarithm>
struct Softmax {
  float highest;
  float factor;  // 1 / sum, or the sum's logarithm

  __device__ explicit Softmax(const Exponentials& e)
      : highest(e.highest), factor(logarithm ? logf(e.sum) : 1 / e.sum) {}

  __device__ float operator()(float value) const {
    return logarithm ? value - highest - factor : exp_below_0(value - highest) * factor;
  }
  template <int count>
  __device__ void operator()(float (&values)[count], int) const {
#pragma unroll
    for (float& value : values) value = (*this)(value);
  }
};

template <class T, int held, bool logarithm>
__global__ void __launch_bounds__(1024) held_softmax(const RowLaunch p, const Pointers x) {
  __shared__ float2 shared[Exponentials::most_warps];
  const Place place = place_in(p.team);
  enter_cluster(place);
  const RowPair<T> rows(p.shape, x, place.row);
  uint4 vectors[held];
  load_vectors(rows.input, rows.cut, place.lane, place.lanes, -HUGE_VALF, vectors);
  const float edge = load_edge(rows.input, rows.cut, place.lane, -HUGE_VALF);
  Exponentials e;
  e.highest = fold_in_warp(fmaxf(edge, largest_of<T>(vectors)), Larger{}, place.lanes);
  e.sum = exp_below_0(edge - e.base());
  e.add_below<T>(vectors);
  e.fold(place, shared);
  unpack_anew(vectors);
  const Softmax<logarithm> softmax(e);
  store_vectors(rows.output, rows.cut, place.lane, place.lanes, vectors, softmax);
  store_edge(rows.output, rows.cut, place.lane, softmax(edge));
}

/// Rows of whole vectors, one a thread.
template <class T, bool logarithm>
__global__ void __launch_bounds__(RowTeam::block_threads) short_softmax(const RowLaunch p, const Pointers x) {
  const Place place = place_in(p.team);
  const int column = place.lane * per_vector<T>;
  const bool there = place.row < p.shape.rows && column < p.shape.columns;
  uint4 vectors[1] = {filled<T>(-HUGE_VALF)};
  if (there) vectors[0] = load_once(static_cast<const T*>(x.inputs[0]) + place.row * p.shape.input_stride + column);
  Exponentials e;
  e.highest = fold_in_warp(largest_of<T>(vectors), Larger{}, place.lanes);
  e.add_below<T>(vectors);
  e.sum = fold_in_warp(e.sum, Add{}, place.lanes);
  if (!there) return;
  float values[per_vector<T>];
  unpack<T>(vectors[0], values);
  const Softmax<logarithm> softmax(e);
  softmax(values, 0);
  T* to = static_cast<T*>(x.output) + place.row * p.shape.output_stride + column;
  *reinterpret_cast<uint4*>(to) = pack<T>(values);
}

/// Reads a row twice, the second time mostly from L2.
template <class T, bool logarithm>
__global__ void __launch_bounds__(512, 2) long_softmax(const RowLaunch p, const Pointers x) {
  __shared__ float2 shared[Exponentials::most_warps];
  const Place place = place_in(p.team);
  const RowPair<T> rows(p.shape, x, place.row);
  const float edge = load_edge(rows.input, rows.cut, place.lane, -HUGE_VALF);
  Exponentials e;
  e.add(edge);
  walk_row(rows.input, rows.cut, place, -HUGE_VALF, [&](auto& vectors, int) { e.add<T>(vectors); });
  e.fold(place, shared);
  const Softmax<logarithm> softmax(e);
  walk_row(rows.input, rows.cut, place, 0, [&](const auto& vectors, int first) {
    store_vectors(rows.output, rows.cut, first, place.lanes, vectors, softmax);
  });
  store_edge(rows.output, rows.cut, place.lane, softmax(edge));
}

using Kernel = void (*)(RowLaunch, Pointers);

/// Whether it was compiled for a device that has clusters.
bool knows_clusters(Kernel kernel) {
  cudaFuncAttributes attributes = {};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)) == cudaSuccess &&
         attributes.ptxVersion >= 90;
}

cudaError_t queue_clusters(Kernel kernel, const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  RowLaunch first = launch;
  Pointers second = pointers;
  void* arguments[] = {&first, &second};
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(launch.team.blocks);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(launch.team.blocks_for(launch.shape.rows)));
  config.blockDim = dim3(static_cast<unsigned>(launch.team.threads()));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments);
}

template <class T, bool logarithm>
Kernel kernel_for(int held) {
  switch (held) {
    case 0:
      return long_softmax<T, logarithm>;
    case 1:
      return held_softmax<T, 1, logarithm>;
    case 2:
      return held_softmax<T, 2, logarithm>;
    case 4:
      return held_softmax<T, 4, logarithm>;
    default:
      return held_softmax<T, 8, logarithm>;
  }
}

template <class T, bool logarithm>
cudaError_t launch_as(RowLaunch launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.team.blocks > 1) {
    const Kernel kernel = kernel_for<T, logarithm>(launch.team.held);
    if (knows_clusters(kernel)) return queue_clusters(kernel, launch, pointers, stream);
    launch.team = {512, 0};
  }
  if (launch.team.lanes <= 32 && launch.team.held == 1 && has_whole_rows<T>(launch, pointers)) {
    return queue(short_softmax<T, logarithm>, static_cast<unsigned>(launch.team.blocks_for(launch.shape.rows)),
                 RowTeam::block_threads, launch, pointers, stream);
  }
  return queue(kernel_for<T, logarithm>(launch.team.held),
               static_cast<unsigned>(launch.team.blocks_for(launch.shape.rows)),
               static_cast<unsigned>(launch.team.threads()), launch, pointers, stream);
}

}  // namespace

cudaError_t launch_softmax(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    return launch.op == RowOp::log_softmax ? launch_as<T, true>(launch, pointers, stream)
                                           : launch_as<T, false>(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
