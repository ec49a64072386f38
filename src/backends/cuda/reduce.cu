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
  wait_for_previous();
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

/// Threads side by side, groups of them that take turns with the rows, and how many rows a thread has on their way.
template <int lanes_, int groups_, int in_flight_>
struct Columns {
  static constexpr int lanes = lanes_, groups = groups_, in_flight = in_flight_, threads = lanes * groups;
};
using FewRows = Columns<32, 8, 4>;
using ManyRows = Columns<many_rows_lanes, 32, 8>;

template <class T, class Op, bool vector, class Shape>
__device__ void walk_down(const T* data, std::int64_t step, std::int64_t count, float (&values)[width<T, vector>]) {
  for (std::int64_t row = threadIdx.x / Shape::lanes; row < count; row += Shape::in_flight * Shape::groups) {
    Chunk<T, vector> chunks[Shape::in_flight];
#pragma unroll
    for (int i = 0; i < Shape::in_flight; ++i) {
      if (row + i * Shape::groups < count) chunks[i].load_once(data + (row + i * Shape::groups) * step);
    }
#pragma unroll
    for (int i = 0; i < Shape::in_flight; ++i) {
      if (row + i * Shape::groups >= count) break;
      float next[width<T, vector>];
      chunks[i].get(next);
#pragma unroll
      for (int j = 0; j < width<T, vector>; ++j) values[j] = Op{}(values[j], next[j]);
    }
  }
}

template <class T, class Op, bool vector, class Shape>
__global__ void __launch_bounds__(Shape::threads) fold_columns(const ReduceLaunch p, const Pointers x) {
  constexpr int wide = width<T, vector>, strip = Shape::lanes * wide;
  __shared__ float shared[Shape::groups][strip];
  wait_for_previous();
  const std::int64_t strips = (p.inner + strip - 1) / strip;
  const std::int64_t first = blockIdx.x % strips * strip;
  const std::int64_t part = blockIdx.x / strips;  // of all of [outer, parts]
  const std::int64_t begin = part % p.parts * p.part_length;
  const std::int64_t count = min(p.part_length, p.length - begin);
  const int lane = static_cast<int>(threadIdx.x) % Shape::lanes;
  const int group = static_cast<int>(threadIdx.x) / Shape::lanes;
  float values[wide];
#pragma unroll
  for (float& value : values) value = Op::neutral;
  if (first + lane * wide < p.inner) {
    const T* data = static_cast<const T*>(x.inputs[0]) + part / p.parts * p.input_stride + begin * p.step + first;
    walk_down<T, Op, vector, Shape>(data + lane * wide, p.step, count, values);
  }
#pragma unroll
  for (int j = 0; j < wide; ++j) shared[group][lane * wide + j] = values[j];
  __syncthreads();
  const int column = static_cast<int>(threadIdx.x);
  if (column >= strip || first + column >= p.inner) return;
  float value = shared[0][column];
  for (int g = 1; g < Shape::groups; ++g) value = Op{}(value, shared[g][column]);
  store_result(p, x, part * p.inner + first + column, value);
}

template <class T, class Op, bool vector, class Shape>
cudaError_t launch_columns(const ReduceLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  constexpr std::int64_t strip = Shape::lanes * width<T, vector>;
  const auto blocks = static_cast<unsigned>((launch.inner + strip - 1) / strip * launch.outer * launch.parts);
  return queue_overlapping(fold_columns<T, Op, vector, Shape>, blocks, Shape::threads, launch, pointers, stream);
}

/// May begin while the launch before it ends: all kernels here wait for it first.
template <class T, class Op>
cudaError_t launch_once(const ReduceLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.inner == 1) {
    return queue_overlapping(fold_rows<T, Op>,
                             static_cast<unsigned>(launch.team.blocks_for(launch.outer * launch.parts)),
                             static_cast<unsigned>(launch.team.threads()), launch, pointers, stream);
  }
  if (!launch.vector) return launch_columns<T, Op, false, FewRows>(launch, pointers, stream);
  return launch.many_rows ? launch_columns<T, Op, true, ManyRows>(launch, pointers, stream)
                          : launch_columns<T, Op, true, FewRows>(launch, pointers, stream);
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
  second.many_rows = false;
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
