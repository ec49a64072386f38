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

/// Begins to copy 16 bytes to shared memory, where wait_for_copies finds them.
__device__ inline void copy_ahead(uint4* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// A thread's first vectors are in registers, the others in shared memory, which no other thread looks at.
template <class T, int held, bool logarithm>
__global__ void __launch_bounds__(1024) held_softmax(const RowLaunch p, const Pointers x) {
  extern __shared__ uint4 kept[];
  __shared__ float2 shared[Exponentials::most_warps];
  const Place place = place_in(p.team);
  enter_cluster(place);
  const RowPair<T> rows(p.shape, x, place.row);
  const int after = place.lane + held * place.lanes;
  const auto staged = [&](int i) -> uint4& { return kept[i * blockDim.x + threadIdx.x]; };
  for (int i = 0; i < p.team.staged; ++i) {
    const int vector = after + i * place.lanes;
    if (vector < rows.cut.vectors) {
      copy_ahead(&staged(i), rows.input + rows.cut.first_column(vector));
    } else {
      staged(i) = filled<T>(-HUGE_VALF);
    }
  }
  uint4 vectors[held];
  load_vectors(rows.input, rows.cut, place.lane, place.lanes, -HUGE_VALF, vectors);
  const float edge = load_edge(rows.input, rows.cut, place.lane, -HUGE_VALF);
  float highest = fmaxf(edge, largest_of<T>(vectors));
  wait_for_copies();
  for (int i = 0; i < p.team.staged; ++i) {
    const uint4 one[] = {staged(i)};
    highest = fmaxf(highest, largest_of<T>(one));
  }
  Exponentials e;
  e.highest = fold_in_warp(highest, Larger{}, place.lanes);
  e.sum = exp_below_0(edge - e.base());
  e.add_below<T>(vectors);
  for (int i = 0; i < p.team.staged; ++i) {
    uint4 one[] = {staged(i)};
    e.add_below<T>(one);
  }
  e.fold(place, shared);
  unpack_anew(vectors);
  const Softmax<logarithm> softmax(e);
  store_vectors(rows.output, rows.cut, place.lane, place.lanes, vectors, softmax);
  for (int i = 0; i < p.team.staged; ++i) {
    const uint4 one[] = {staged(i)};
    store_vectors(rows.output, rows.cut, after + i * place.lanes, place.lanes, one, softmax);
  }
  store_edge(rows.output, rows.cut, place.lane, softmax(edge));
}

/// Rows of whole vectors, one a thread, and a thread has `count` of them on their way.
template <class T, bool logarithm, int count>
__global__ void __launch_bounds__(RowTeam::block_threads) short_softmax(const RowLaunch p, const Pointers x) {
  const Place place = place_in(p.team);
  const int each = RowTeam::block_threads / place.lanes, column = place.lane * per_vector<T>;
  const std::int64_t first = place.row + static_cast<std::int64_t>(blockIdx.x) * each * (count - 1);
  const auto there = [&](int i) { return first + i * each < p.shape.rows && column < p.shape.columns; };
  uint4 loaded[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const T* from = static_cast<const T*>(x.inputs[0]) + (first + i * each) * p.shape.input_stride + column;
    loaded[i] = there(i) ? load_once(from) : filled<T>(-HUGE_VALF);
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    uint4 vectors[] = {loaded[i]};
    Exponentials e;
    e.highest = fold_in_warp(largest_of<T>(vectors), Larger{}, place.lanes);
    e.add_below<T>(vectors);
    e.sum = fold_in_warp(e.sum, Add{}, place.lanes);
    if (!there(i)) continue;
    float values[per_vector<T>];
    unpack<T>(vectors[0], values);
    const Softmax<logarithm> softmax(e);
    softmax(values, 0);
    T* to = static_cast<T*>(x.output) + (first + i * each) * p.shape.output_stride + column;
    *reinterpret_cast<uint4*>(to) = pack<T>(values);
  }
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

/// Several rows a thread where there are still many blocks then.
template <class T, bool logarithm>
cudaError_t launch_short(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  constexpr int count = 4;
  const std::int64_t blocks = launch.team.blocks_for(launch.shape.rows);
  const bool many = blocks >= 4 * count * launch.most_blocks;
  return queue(many ? short_softmax<T, logarithm, count> : short_softmax<T, logarithm, 1>,
               static_cast<unsigned>(many ? (blocks + count - 1) / count : blocks), RowTeam::block_threads, launch,
               pointers, stream);
}

template <class T, bool logarithm>
cudaError_t launch_as(RowLaunch launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.team.lanes <= 32 && launch.team.held == 1 && has_whole_rows<T>(launch, pointers)) {
    return launch_short<T, logarithm>(launch, pointers, stream);
  }
  // Code for devices without clusters may run on one that has them.
  if (launch.team.blocks > 1 && code_version<held_softmax<T, 8, logarithm>>() < 90) launch.team = {512, 0};
  const int bytes = launch.team.staged * launch.team.lanes * 16;
  if (bytes > 0) {  // with 8 vectors held
    const cudaError_t error = allow_memory<held_softmax<T, 8, logarithm>>(bytes);
    if (error != cudaSuccess) return error;
  }
  LaunchConfig how(static_cast<unsigned>(launch.team.blocks_for(launch.shape.rows)),
                   static_cast<unsigned>(launch.team.threads()), stream);
  how.with_shared_memory(bytes).in_clusters_of(launch.team.blocks);
  return queue(kernel_for<T, logarithm>(launch.team.held), how, launch, pointers);
}

}  // namespace

cudaError_t launch_softmax(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    return launch.op == OpId::log_softmax ? launch_as<T, true>(launch, pointers, stream)
                                          : launch_as<T, false>(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
