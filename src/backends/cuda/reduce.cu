#include "backends/cuda/rows.cuh"

// Rows are reduced by teams, columns by threads side by side that walk down together. Long ones are cut into parts,
// which a second launch reduces.

namespace xpuruntime::cuda {
namespace {

// NaN stays, and +0 is above -0.
struct Highest {
  static constexpr float neutral = -HUGE_VALF;
  __device__ float operator()(float a, float b) const {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
};
struct Lowest {
  static constexpr float neutral = HUGE_VALF;
  __device__ float operator()(float a, float b) const {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
};

/// The result for one of [outer, parts, inner].
__device__ void store_result(const ReduceLaunch& p, const Pointers& x, std::int64_t at, float value) {
  if (p.parts > 1) {
    static_cast<float*>(x.workspace)[at] = value;
    return;
  }
  if (p.fold == Fold::mean) value /= static_cast<float>(p.divisor);
  store_float(x.output, p.output, at, value);
}

template <class T, class Op>
__global__ void __launch_bounds__(512, 2) fold_rows(const ReduceLaunch p, const Pointers x) {
  __shared__ float shared[32];
  const Place place = place_in(p.team);
  const bool there = place.row < p.outer * p.parts;
  const std::int64_t row = there ? place.row / p.parts : 0;
  const std::int64_t begin = there ? place.row % p.parts * p.part_length : 0;
  const std::int64_t columns = there ? max(min(p.part_length, p.length - begin), std::int64_t{0}) : 0;
  const T* data = static_cast<const T*>(x.inputs[0]) + row * p.input_stride + begin;
  float value = Op::neutral;
  const RowCut<T> cut = cut_row(data, static_cast<int>(columns));
  walk_row(data, cut, place, Op::neutral, [&](auto& vectors, int) {
#pragma unroll
    for (int i = 0; i < 4; ++i) for_values<T>(vectors[i], [&](float next) { value = Op{}(value, next); });
  });
  value = fold_across(place, Op{}(value, load_edge(data, cut, place.lane, Op::neutral)), Op{}, shared);
  if (there && place.lane == 0) store_result(p, x, place.row, value);
}

constexpr int column_lanes = 32;
constexpr int column_groups = 8;  // warps that take turns with the rows

template <class T, class Op, bool vector>
__device__ void walk_down(const T* data, std::int64_t step, std::int64_t count, float (&values)[width<T, vector>]) {
  constexpr int in_flight = 4;
  for (std::int64_t row = threadIdx.x / column_lanes; row < count; row += in_flight * column_groups) {
    Chunk<T, vector> chunks[in_flight];
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (row + i * column_groups < count) chunks[i].load_once(data + (row + i * column_groups) * step);
    }
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (row + i * column_groups >= count) break;
      float next[width<T, vector>];
      chunks[i].get(next);
#pragma unroll
      for (int j = 0; j < width<T, vector>; ++j) values[j] = Op{}(values[j], next[j]);
    }
  }
}

template <class T, class Op, bool vector>
__global__ void __launch_bounds__(column_lanes* column_groups) fold_columns(const ReduceLaunch p, const Pointers x) {
  constexpr int wide = width<T, vector>, strip = column_lanes * wide;
  __shared__ float shared[column_groups][strip];
  const std::int64_t strips = (p.inner + strip - 1) / strip;
  const std::int64_t first = blockIdx.x % strips * strip;
  const std::int64_t part = blockIdx.x / strips;  // of all of [outer, parts]
  const std::int64_t begin = part % p.parts * p.part_length;
  const std::int64_t count = min(p.part_length, p.length - begin);
  const int lane = static_cast<int>(threadIdx.x) % column_lanes;
  const int group = static_cast<int>(threadIdx.x) / column_lanes;
  float values[wide];
#pragma unroll
  for (float& value : values) value = Op::neutral;
  if (first + lane * wide < p.inner) {
    const T* data = static_cast<const T*>(x.inputs[0]) + part / p.parts * p.input_stride + begin * p.step + first;
    walk_down<T, Op, vector>(data + lane * wide, p.step, count, values);
  }
#pragma unroll
  for (int j = 0; j < wide; ++j) shared[group][lane * wide + j] = values[j];
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x);
  if (column >= strip || first + column >= p.inner) return;
  float value = shared[0][column];
  for (int g = 1; g < column_groups; ++g) value = Op{}(value, shared[g][column]);
  store_result(p, x, part * p.inner + first + column, value);
}

template <class T, class Op>
cudaError_t launch_once(const ReduceLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.inner == 1) {
    return queue(fold_rows<T, Op>, static_cast<unsigned>(launch.team.blocks_for(launch.outer * launch.parts)),
                 static_cast<unsigned>(launch.team.threads()), launch, pointers, stream);
  }
  const std::int64_t strip = column_lanes * (launch.vector ? per_vector<T> : 1);
  const auto blocks = static_cast<unsigned>((launch.inner + strip - 1) / strip * launch.outer * launch.parts);
  const auto kernel = launch.vector ? fold_columns<T, Op, true> : fold_columns<T, Op, false>;
  return queue(kernel, blocks, column_lanes * column_groups, launch, pointers, stream);
}

/// The parts, which lie as [outer, parts, inner] in the workspace.
ReduceLaunch of_parts(const ReduceLaunch& launch) {
  ReduceLaunch second = launch;
  second.length = second.part_length = launch.parts;
  second.parts = 1;
  second.input_stride = launch.parts * launch.inner;
  second.step = launch.inner;
  second.dtype = DataType::float32;
  second.vector = launch.inner % 4 == 0;
  second.team = launch.last_team;
  return second;
}

template <class Op>
cudaError_t launch_with(const ReduceLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const cudaError_t error = with_type(
      launch.dtype, [&](auto element) { return launch_once<decltype(element), Op>(launch, pointers, stream); });
  if (error != cudaSuccess || launch.parts == 1) return error;
  Pointers second = pointers;
  second.inputs[0] = pointers.workspace;
  return launch_once<float, Op>(of_parts(launch), second, stream);
}

}  // namespace

cudaError_t launch(const ReduceLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.outer == 0 || launch.inner == 0) return cudaSuccess;
  switch (launch.fold) {
    case Fold::max:
      return launch_with<Highest>(launch, pointers, stream);
    case Fold::min:
      return launch_with<Lowest>(launch, pointers, stream);
    default:
      return launch_with<Add>(launch, pointers, stream);
  }
}

}  // namespace xpuruntime::cuda
