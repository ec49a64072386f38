#pragma once

#include "backends/cuda/launch.cuh"
#include "backends/cuda/vectors.cuh"

namespace xpuruntime::cuda {

inline constexpr int element_threads = 256;
inline constexpr int run_threads = 128;  // on an H200 slightly faster than 256 where much is computed

/// Where element `index`, counted in the output's row-major order, lies in each operand.
struct Offsets {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t output = 0;
  std::int64_t third = 0;
};

/// `Index` is 32 bits wide where the count allows: 64-bit division is slow. `third` are the strides of a third input.
template <class Index>
__device__ inline Offsets offsets_of(const ElementwiseShape& shape, Index index, const std::int64_t* third = nullptr) {
  Offsets offsets;
  for (int dim = shape.rank - 1; dim >= 0; --dim) {
    const Index extent = static_cast<Index>(shape.extent[dim]);
    const Index before = dim == 0 ? 0 : index / extent;  // nothing is left of the first dim to divide
    const auto at = static_cast<std::int64_t>(index - before * extent);
    index = before;
    offsets.first += at * shape.strides[0][dim];
    offsets.second += at * shape.strides[1][dim];
    offsets.output += at * shape.strides[2][dim];
    if (third != nullptr) offsets.third += at * third[dim];
  }
  return offsets;
}

__host__ __device__ inline bool fits_32_bits(const ElementwiseShape& shape) {
  return shape.count < (std::int64_t{1} << 31);
}

/// For kernels that are made for all layouts at once.
__device__ inline Offsets offsets_in(const ElementwiseShape& shape, std::int64_t index,
                                     const std::int64_t* third = nullptr) {
  if (shape.contiguous) return {index, index, index, index};
  return fits_32_bits(shape) ? offsets_of(shape, static_cast<std::uint32_t>(index), third)
                             : offsets_of(shape, static_cast<std::uint64_t>(index), third);
}

/// Neighbours, moved 16 bytes at a time: eight, or as many as 16 bytes hold.
template <class T, int count = 8>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Pack {
  T values[count];
};
template <class T>
using Vector = Pack<T, 16 / static_cast<int>(sizeof(T))>;

/// Of bytes that are moved. One vector a thread streams fastest; of smaller units it takes several to keep enough on
/// their way.
template <class Unit>
inline constexpr int units_per_thread = sizeof(Unit) == 16 ? 1 : 4;
template <class Unit>
unsigned blocks_of_units(std::int64_t count) {
  constexpr std::int64_t of_a_block = element_threads * units_per_thread<Unit>;
  return static_cast<unsigned>((count + of_a_block - 1) / of_a_block);
}

/// 2^x by the special function units; below 2^-126 it is 0.
__device__ inline float fast_exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

/// x / (1 + exp(y)). What is rounded to 16 bits is computed by the special function units: off by less than 2^-17.
template <class T>
__device__ inline float divided_by_1_plus_exp(float x, float y) {
  if constexpr (sizeof(T) == 4) {
    return x / (1 + expf(y));
  } else {  // both terms times 2^-24: so sigmoid and silu are 0 in 16 bits before the sum overflows
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(0x1p-24f + fast_exp2(fmaf(y, 1.44269504f, -24))));
    return x * (0x1p-24f * inverse);
  }
}

__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t thread_count() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// One vector of an operand, or one value for all of it.
template <class T, int count = 16 / static_cast<int>(sizeof(T))>
__device__ inline Pack<T, count> load_operand(const void* data, std::int64_t at, bool broadcast) {
  const T* from = static_cast<const T*>(data) + at;
  if (!broadcast) return *reinterpret_cast<const Pack<T, count>*>(from);
  Pack<T, count> out;
#pragma unroll
  for (T& value : out.values) value = *from;
  return out;
}

/// Functions are Function::apply(op, a, b): arrays of values, of which the first takes the results. With one input, b
/// is not set.
template <class T, class Function>
__device__ inline void one_element(ElementOp op, const Pointers& x, const Offsets& at) {
  T a[1] = {static_cast<const T*>(x.inputs[0])[at.first]};
  T b[1] = {};
  if constexpr (Function::inputs == 2) b[0] = static_cast<const T*>(x.inputs[1])[at.second];
  Function::apply(op, a, b);
  static_cast<T*>(x.output)[at.output] = a[0];
}

/// Where every operand is one run of memory. One vector a thread, by plain loads: on an H200 that streams faster than
/// more vectors, hints to the caches or blocks that go on to the next vector. Before the loads little may be computed:
/// so each op is a kernel of its own.
template <class T, class Function, ElementOp op>
__global__ void __launch_bounds__(run_threads) by_runs(const std::int64_t count, const Pointers x) {
  wait_for_previous();
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  const std::int64_t first = thread_index() * width;
  if (first + width > count) {
#pragma unroll 1
    for (std::int64_t i = first; i < count; ++i) one_element<T, Function>(op, x, {i, i, i, i});
    return;
  }
  Vector<T> a = load_operand<T>(x.inputs[0], first, false);
  Vector<T> b = {};
  if constexpr (Function::inputs == 2) b = load_operand<T>(x.inputs[1], first, false);
  Function::apply(op, a.values, b.values);
  *reinterpret_cast<Vector<T>*>(static_cast<T*>(x.output) + first) = a;
}

/// Rows of whole vectors, in which every operand's elements are neighbours; few enough for 32 bits.
struct RowsOfVectors {
  std::uint32_t count = 0;   // of vectors in all
  std::uint32_t length = 0;  // of a row, in vectors
  std::int64_t strides[3] = {};
};

inline bool has_rows_of_vectors(const ElementLaunch& launch) {
  const auto& strides = launch.shape.strides;
  return launch.vectors && launch.shape.rank == 2 && fits_32_bits(launch.shape) && strides[0][1] == 1 &&
         strides[1][1] == 1 && strides[2][1] == 1;
}

template <class T>
RowsOfVectors rows_of_vectors(const ElementwiseShape& shape) {
  constexpr std::int64_t width = 16 / static_cast<std::int64_t>(sizeof(T));
  return {static_cast<std::uint32_t>(shape.count / width),
          static_cast<std::uint32_t>(shape.extent[1] / width),
          {shape.strides[0][0], shape.strides[1][0], shape.strides[2][0]}};
}

/// As by_runs, for rows that lie apart or are repeated in an operand.
template <class T, class Function, ElementOp op>
__global__ void __launch_bounds__(run_threads) by_rows(const RowsOfVectors rows, const Pointers x) {
  wait_for_previous();
  const auto vector = static_cast<std::uint32_t>(thread_index());
  if (vector >= rows.count) return;
  const std::uint32_t row = vector / rows.length;
  const std::int64_t at = std::int64_t{vector - row * rows.length} * (16 / static_cast<int>(sizeof(T)));
  Vector<T> a = load_operand<T>(x.inputs[0], row * rows.strides[0] + at, false);
  const Vector<T> b = load_operand<T>(x.inputs[1], row * rows.strides[1] + at, false);
  Function::apply(op, a.values, b.values);
  *reinterpret_cast<Vector<T>*>(static_cast<T*>(x.output) + row * rows.strides[2] + at) = a;
}

template <class T, class Function, class Index>
__global__ void __launch_bounds__(element_threads) by_vectors(const ElementLaunch p, const Pointers x) {
  wait_for_previous();
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  const std::int64_t first = thread_index() * width;
  if (first >= p.shape.count) return;
  if (first + width > p.shape.count) {  // what is left of one long run
    for (std::int64_t i = first; i < p.shape.count; ++i) {
      one_element<T, Function>(p.op, x, offsets_of<Index>(p.shape, static_cast<Index>(i)));
    }
    return;
  }
  const int last = p.shape.rank - 1;
  const Offsets at = offsets_of<Index>(p.shape, static_cast<Index>(first));
  Vector<T> a = load_operand<T>(x.inputs[0], at.first, p.shape.strides[0][last] == 0);
  Vector<T> b = {};
  if constexpr (Function::inputs == 2) b = load_operand<T>(x.inputs[1], at.second, p.shape.strides[1][last] == 0);
  Function::apply(p.op, a.values, b.values);
  *reinterpret_cast<Vector<T>*>(static_cast<T*>(x.output) + at.output) = a;
}

template <class T, class Function, class Index>
__global__ void __launch_bounds__(element_threads) by_elements(const ElementLaunch p, const Pointers x) {
  wait_for_previous();
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    one_element<T, Function>(p.op, x, offsets_of<Index>(p.shape, static_cast<Index>(i)));
  }
}

/// Blocks of a thread for each vector.
template <class T>
unsigned blocks_of_vectors(std::int64_t count, int threads) {
  const std::int64_t of_a_block = threads * (16 / static_cast<std::int64_t>(sizeof(T)));
  return static_cast<unsigned>((count + of_a_block - 1) / of_a_block);
}

/// The launch's op is this one or one of those behind it.
template <class T, class Function, ElementOp op>
cudaError_t launch_op(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if constexpr (op != Function::last) {
    constexpr auto next = static_cast<ElementOp>(static_cast<int>(op) + 1);
    if (launch.op != op) return launch_op<T, Function, next>(launch, pointers, stream);
  }
  const std::int64_t count = launch.shape.count;
  const unsigned blocks = blocks_of_vectors<T>(count, run_threads);
  if constexpr (Function::inputs == 2) {
    if (!launch.shape.contiguous) {
      return queue_overlapping(by_rows<T, Function, op>, blocks, run_threads, rows_of_vectors<T>(launch.shape),
                               pointers, stream);
    }
  }
  return queue_overlapping(by_runs<T, Function, op>, blocks, run_threads, count, pointers, stream);
}

template <class T, class Function, class Index>
cudaError_t launch_as(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (!launch.vectors) {
    return queue_overlapping(by_elements<T, Function, Index>, blocks_for(launch.shape.count, element_threads),
                             element_threads, launch, pointers, stream);
  }
  return queue_overlapping(by_vectors<T, Function, Index>, blocks_of_vectors<T>(launch.shape.count, element_threads),
                           element_threads, launch, pointers, stream);
}

template <class T, class Function>
cudaError_t launch_elements(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const bool by_op = launch.shape.contiguous || (Function::inputs == 2 && has_rows_of_vectors(launch));
  if (by_op) return launch_op<T, Function, Function::first>(launch, pointers, stream);
  return fits_32_bits(launch.shape) ? launch_as<T, Function, std::uint32_t>(launch, pointers, stream)
                                    : launch_as<T, Function, std::uint64_t>(launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
