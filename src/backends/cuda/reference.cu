#include "backends/cuda/finish.cuh"
#include "backends/cuda/launch.cuh"

namespace xpuruntime::cuda {
namespace {

__device__ inline std::int64_t start_of(const MatmulShape& shape, const MatrixStrides& strides, std::int64_t batch) {
  std::int64_t offset = 0;
  for (int dim = shape.batch_dims - 1; dim >= 0; --dim) {
    offset += batch % shape.batch_extent[dim] * strides.batch[dim];
    batch /= shape.batch_extent[dim];
  }
  return offset;
}

__device__ inline std::int64_t place_of_c(const Finish& finish, std::int64_t index) {
  std::int64_t offset = 0;
  for (int dim = finish.rank - 1; dim >= 0; --dim) {
    offset += index % finish.extent[dim] * finish.c_strides[dim];
    index /= finish.extent[dim];
  }
  return offset;
}

template <class Number>
__device__ inline void one_output(const ReferenceLaunch& p, const Pointers& x, std::int64_t index) {
  const MatmulShape& s = p.shape;
  const std::int64_t column = index % s.n;
  const std::int64_t row = index / s.n % s.m;
  const std::int64_t batch = index / s.n / s.m;
  const std::int64_t a = start_of(s, s.a, batch) + row * s.a.row;
  const std::int64_t b = start_of(s, s.b, batch) + column * s.b.column;
  Number sum = 0;
  for (std::int64_t i = 0; i < s.k; ++i) {
    sum = multiply_add(sum, load_as<Number>(x.inputs[0], p.a, a + i * s.a.column),
                       load_as<Number>(x.inputs[1], p.b, b + i * s.b.row));
  }
  const std::int64_t out = start_of(s, s.c, batch) + row * s.c.row + column * s.c.column;
  store_as(x.output, p.output, out, finished(p.finish, x, sum, row, column, place_of_c(p.finish, index)));
}

template <class Number>
__global__ void reference_kernel(const ReferenceLaunch p, const Pointers x) {
  const std::int64_t count = p.shape.batch_count * p.shape.m * p.shape.n;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    one_output<Number>(p, x, i);
  }
}

}  // namespace

cudaError_t launch(const ReferenceLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.batch_count * launch.shape.m * launch.shape.n;
  if (count == 0) return cudaSuccess;
  constexpr int threads = 256;
  return queue(launch.integers ? reference_kernel<std::int64_t> : reference_kernel<double>, blocks_for(count, threads),
               threads, launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
