#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

template <class T, int count>
__device__ void load_angles_as(const T* from, std::int64_t step, float (&out)[count]) {
  if constexpr (count % per_vector<T> == 0) {
    if (step == 1 && is_aligned_to_16(from)) return load_neighbours(from, out);
  }
#pragma unroll
  for (int i = 0; i < count; ++i) out[i] = to_float(from[i * step]);
}

/// With `plain` they are float32, and begin on multiples of 16 bytes.
template <bool plain, int count>
__device__ void load_angles(const void* data, const AngleTable& table, std::int64_t position, std::int64_t pair,
                            float (&out)[count]) {
  if constexpr (plain) return load_neighbours(static_cast<const float*>(data) + position * table.row + pair, out);
  const std::int64_t at = position * table.row + pair * table.step;
  switch (table.dtype) {
    case DataType::float16:
      return load_angles_as(static_cast<const f16*>(data) + at, table.step, out);
    case DataType::bfloat16:
      return load_angles_as(static_cast<const bf16*>(data) + at, table.step, out);
    default:
      return load_angles_as(static_cast<const float*>(data) + at, table.step, out);
  }
}

/// A unit is `width` pairs, or as many elements behind the last pair: two groups of neighbours.
template <class T, int width>
struct Unit {
  using Group = Pack<T, width>;
  std::int64_t first, second;  // elements of the head where the groups begin
  Group a, b;
  bool whole;  // false: the head ends with the first group

  __device__ Unit(const RopeLaunch& p, std::int64_t unit) {
    const bool halves = !p.interleaved && unit * width < p.pairs;
    first = (halves ? 1 : 2) * unit * width;
    second = first + (halves ? p.pairs : width);
    whole = second < p.size;
  }

  __device__ void load(const T* head, std::int64_t step) {
    a = *reinterpret_cast<const Group*>(head + first * step);
    if (whole) b = *reinterpret_cast<const Group*>(head + second * step);
  }
  __device__ void store(T* head, std::int64_t step) const {
    *reinterpret_cast<Group*>(head + first * step) = a;
    if (whole) *reinterpret_cast<Group*>(head + second * step) = b;
  }

  __device__ static void get(const Group& group, float (&out)[width]) {
    if constexpr (width == 1) {
      out[0] = to_float(group.values[0]);
    } else {
      unpack<T>(reinterpret_cast<const uint4&>(group), out);
    }
  }
  __device__ static void put(Group& group, const float (&in)[width]) {
    if constexpr (width == 1) {
      group.values[0] = from_float<T>(in[0]);
    } else {
      reinterpret_cast<uint4&>(group) = pack<T>(in);
    }
  }

  __device__ static void turn(float& one, float& other, float cos, float sin) {
    const float x = one, y = other;
    one = fmaf(-y, sin, x * cos);
    other = fmaf(x, sin, y * cos);
  }

  __device__ void rotate(bool interleaved, const float (&cos)[width], const float (&sin)[width]) {
    float x[width], y[width];
    get(a, x);
    get(b, y);
    if (!interleaved || width == 1) {
#pragma unroll
      for (int i = 0; i < width; ++i) turn(x[i], y[i], cos[i], sin[i]);
    } else if constexpr (width > 1) {
#pragma unroll
      for (int i = 0; i < width / 2; ++i) {
        turn(x[2 * i], x[2 * i + 1], cos[i], sin[i]);
        turn(y[2 * i], y[2 * i + 1], cos[width / 2 + i], sin[width / 2 + i]);
      }
    }
    put(a, x);
    put(b, y);
  }
};

/// Units of a head that turn, and of all of it.
template <int width>
__host__ __device__ std::int64_t turning_units(const RopeLaunch& p) {
  return p.pairs / width;
}
template <int width>
__host__ __device__ std::int64_t all_units(const RopeLaunch& p) {
  return (p.size + 2 * width - 1) / (2 * width);
}

template <class T, int width, class Index, bool plain>
__global__ void __launch_bounds__(element_threads) rotate_heads(const RopeLaunch p, const Pointers x) {
  wait_for_previous();
  // In place there is nothing to copy.
  const bool copies = x.inputs[0] != x.output || p.pairs == 0;
  const auto units = static_cast<Index>(copies ? all_units<width>(p) : turning_units<width>(p));
  const std::int64_t index = thread_index();
  if (index >= p.heads.count * static_cast<std::int64_t>(units)) return;
  const Index head = static_cast<Index>(index) / units;
  const auto at_unit = static_cast<std::int64_t>(static_cast<Index>(index) - head * units);
  const Offsets at = offsets_of<Index>(p.heads, head);
  Unit<T, width> unit(p, at_unit);
  unit.load(static_cast<const T*>(x.inputs[0]) + at.first, p.input_step);
  const std::int64_t position = load_index(x.inputs[1], p.position, at.second);
  if (position < 0 || position >= p.positions) {
    *static_cast<volatile std::uint32_t*>(x.fault) = 1;
    return;
  }
  if (at_unit * width < p.pairs) {
    float cos[width], sin[width];
    load_angles<plain>(x.inputs[2], p.cos, position, at_unit * width, cos);
    load_angles<plain>(x.inputs[3], p.sin, position, at_unit * width, sin);
    unit.rotate(p.interleaved, cos, sin);
  }
  unit.store(static_cast<T*>(x.output) + at.output, p.output_step);
}

/// Whole heads that turn, in up to two dims, with plain tables.
struct WholeLaunch {
  int heads = 1;                  // of a row
  int units = 1;                  // of a head
  std::int64_t steps[3][2] = {};  // of input, positions and output, from row to row and from head to head
  std::int64_t half = 0;
  std::int64_t positions = 0;
  std::int64_t table_rows[2] = {};  // from position to position, of cos and sin
  DataType position = DataType::int64;
};

/// A unit is a vector of each half, or neighbours that turn in `vectors` heads, for which the angles are read once. The
/// code is short: of what a few tokens take, most is the time until code and data come.
template <class T, bool interleaved, int vectors>
__global__ void __launch_bounds__(element_threads) rotate_whole(const WholeLaunch p, const Pointers x) {
  wait_for_previous();
  static_assert(interleaved || vectors == 2);
  constexpr int width = per_vector<T>, angles = interleaved ? width / 2 : width;
  const int index = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const int head = index / p.units, unit = index - head * p.units;
  if (head >= p.heads) return;
  const std::int64_t row = blockIdx.x;
  const auto at = [&](int operand) { return row * p.steps[operand][0] + head * p.steps[operand][1]; };
  const auto next = [&](int operand) { return interleaved ? p.heads * p.steps[operand][1] : p.half; };
  const T* from = static_cast<const T*>(x.inputs[0]) + at(0) + unit * width;
  const uint4 first = load_once(from), second = vectors == 2 ? load_once(from + next(0)) : uint4{};
  const std::int64_t position = load_index(x.inputs[1], p.position, at(1));
  if (position < 0 || position >= p.positions) {
    *static_cast<volatile std::uint32_t*>(x.fault) = 1;
    return;
  }
  float a[width], b[width], cos[angles], sin[angles];
  load_angles<angles % 4 == 0>(x.inputs[2], {DataType::float32, p.table_rows[0], 1}, position, unit * angles, cos);
  load_angles<angles % 4 == 0>(x.inputs[3], {DataType::float32, p.table_rows[1], 1}, position, unit * angles, sin);
  unpack<T>(first, a);
  unpack<T>(second, b);
#pragma unroll
  for (int i = 0; i < angles; ++i) {
    Unit<T, width>::turn(interleaved ? a[2 * i] : a[i], interleaved ? a[2 * i + 1] : b[i], cos[i], sin[i]);
    if constexpr (interleaved && vectors == 2) Unit<T, width>::turn(b[2 * i], b[2 * i + 1], cos[i], sin[i]);
  }
  T* to = static_cast<T*>(x.output) + at(2) + unit * width;
  *reinterpret_cast<uint4*>(to) = pack<T>(a);
  if (vectors == 2) *reinterpret_cast<uint4*>(to + next(2)) = pack<T>(b);
}

bool is_plain(const AngleTable& table, const void* data) {
  return table.dtype == DataType::float32 && table.step == 1 && table.row % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

template <class T>
std::int64_t whole_units(const RopeLaunch& p) {
  return (p.interleaved ? p.size : p.pairs) / per_vector<T>;
}

/// Where rotate_whole does all of it.
template <class T>
bool takes_whole(const RopeLaunch& p, const Pointers& x) {
  constexpr std::int64_t most_units = std::int64_t{1} << 23, most_rows = (std::int64_t{1} << 31) - 1;
  const std::int64_t inner = p.heads.rank == 0 ? 1 : p.heads.extent[p.heads.rank - 1];
  return p.vectors && 2 * p.pairs == p.size && p.heads.rank <= 2 && is_plain(p.cos, x.inputs[2]) &&
         is_plain(p.sin, x.inputs[3]) && inner <= most_units / whole_units<T>(p) && p.heads.count / inner <= most_rows;
}

template <class T>
cudaError_t launch_whole(const RopeLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const ElementwiseShape& shape = launch.heads;
  WholeLaunch whole;
  whole.units = static_cast<int>(whole_units<T>(launch));
  whole.half = launch.pairs;
  whole.positions = launch.positions;
  whole.table_rows[0] = launch.cos.row;
  whole.table_rows[1] = launch.sin.row;
  whole.position = launch.position;
  for (int d = 0; d < shape.rank; ++d) {
    const int dim = 2 - shape.rank + d;  // the last one is that of the heads
    if (dim == 1) whole.heads = static_cast<int>(shape.extent[d]);
    for (int operand = 0; operand < 3; ++operand) whole.steps[operand][dim] = shape.strides[operand][d];
  }
  const auto rows = static_cast<unsigned>(shape.count / whole.heads);
  // Two heads a thread, which have the same position, where there are enough of them for all multiprocessors.
  const bool halved = launch.interleaved && whole.heads % 2 == 0 && whole.steps[1][1] == 0 &&
                      shape.count * whole.units >= std::int64_t{1} << 18;
  if (halved) whole.heads /= 2;
  const auto blocks = static_cast<unsigned>((whole.heads * whole.units + element_threads - 1) / element_threads);
  const auto kernel = halved               ? rotate_whole<T, true, 2>
                      : launch.interleaved ? rotate_whole<T, true, 1>
                                           : rotate_whole<T, false, 2>;
  return queue_overlapping(kernel, dim3(rows, blocks), element_threads, whole, pointers, stream);
}

template <class T, int width>
cudaError_t launch_units(const RopeLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t work = launch.heads.count * all_units<width>(launch);
  const bool narrow = work < (std::int64_t{1} << 31);
  auto kernel = narrow ? rotate_heads<T, width, std::uint32_t, false> : rotate_heads<T, width, std::uint64_t, false>;
  if constexpr (width > 1) {
    if (narrow && is_plain(launch.cos, pointers.inputs[2]) && is_plain(launch.sin, pointers.inputs[3])) {
      kernel = rotate_heads<T, width, std::uint32_t, true>;
    }
  }
  const auto blocks = static_cast<unsigned>((work + element_threads - 1) / element_threads);
  return queue_overlapping(kernel, blocks, element_threads, launch, pointers, stream);
}

}  // namespace

cudaError_t launch(const RopeLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.heads.count == 0 || launch.size == 0) return cudaSuccess;
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    if (takes_whole<T>(launch, pointers)) return launch_whole<T>(launch, pointers, stream);
    return launch.vectors ? launch_units<T, per_vector<T>>(launch, pointers, stream)
                          : launch_units<T, 1>(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
