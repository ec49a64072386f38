#include "backends/cuda/launch.cuh"
#include "backends/cuda/numeric.cuh"

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

__device__ inline void one_output(const ReferenceLaunch& p, const Pointers& x, std::int64_t index) {
  const MatmulShape& s = p.shape;
  const std::int64_t column = index % s.n;
  const std::int64_t row = index / s.n % s.m;
  const std::int64_t batch = index / s.n / s.m;
  const std::int64_t a = start_of(s, s.a, batch) + row * s.a.row;
  const std::int64_t b = start_of(s, s.b, batch) + column * s.b.column;
  double sum = 0;
  for (std::int64_t i = 0; i < s.k; ++i) {
    sum += load_double(x.inputs[0], p.a, a + i * s.a.column) * load_double(x.inputs[1], p.b, b + i * s.b.row);
  }
  const std::int64_t c = start_of(s, s.c, batch) + row * s.c.row + column * s.c.column;
  store_double(x.output, p.c, c, sum);
}

__global__ void reference_kernel(const ReferenceLaunch p, const Pointers x) {
  const std::int64_t count = p.shape.batch_count * p.shape.m * p.shape.n;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    one_output(p, x, i);
  }
}

}  // namespace

cudaError_t launch(const ReferenceLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.batch_count * launch.shape.m * launch.shape.n;
  if (count == 0) return cudaSuccess;
  constexpr int threads = 256;
  return queue(reference_kernel, blocks_for(count, threads), threads, launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
