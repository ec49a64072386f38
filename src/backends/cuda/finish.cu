#include "backends/cuda/finish.cuh"
#include "backends/cuda/launch.cuh"

namespace xpuruntime::cuda {
namespace {

/// `Index` is 32 bits wide where the count allows: 64-bit division is slow.
template <class Number, class Index>
__device__ inline void finish_one(const FinishLaunch& p, const Pointers& x, Index index) {
  std::int64_t c = 0, out = 0;
  Index rest = index;
  for (int dim = p.finish.rank - 1; dim >= 0; --dim) {
    const Index extent = static_cast<Index>(p.finish.extent[dim]);
    const Index before = dim == 0 ? 0 : rest / extent;  // nothing is left of the first dim to divide
    const auto at = static_cast<std::int64_t>(rest - before * extent);
    rest = before;
    c += at * p.finish.c_strides[dim];
    out += at * p.strides[dim];
  }
  std::int64_t row = 0, column = 0;
  if (p.finish.scaled[0] || p.finish.scaled[1]) {
    const Index columns = static_cast<Index>(p.finish.columns);
    row = static_cast<std::int64_t>(index / columns % static_cast<Index>(p.finish.rows));
    column = static_cast<std::int64_t>(index % columns);
  }
  const Number sum = p.in_place ? load_as<Number>(x.output, p.sums, out) : load_as<Number>(x.workspace, p.sums, index);
  store_as(x.output, p.output, out, finished(p.finish, x, sum, row, column, c));
}

__host__ __device__ inline std::int64_t count_of(const Finish& finish) {
  std::int64_t count = 1;
  for (int dim = 0; dim < finish.rank; ++dim) count *= finish.extent[dim];
  return count;
}

template <class Number, class Index>
__global__ void finish_kernel(const FinishLaunch p, const Pointers x) {
  const Index count = static_cast<Index>(count_of(p.finish));
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    finish_one<Number>(p, x, i);
  }
}

template <class Number>
cudaError_t finish_all(const FinishLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  constexpr int threads = 256;
  const std::int64_t count = count_of(launch.finish);
  if (count == 0) return cudaSuccess;
  const bool narrow = count < std::int64_t{1} << 31;
  return queue(narrow ? finish_kernel<Number, std::uint32_t> : finish_kernel<Number, std::uint64_t>,
               blocks_for(count, threads), threads, launch, pointers, stream);
}

}  // namespace

cudaError_t launch(const FinishLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.sums == DataType::float64) return finish_all<double>(launch, pointers, stream);
  const bool integers = launch.output >= DataType::int64;
  return (integers ? finish_all<std::int64_t> : finish_all<float>)(launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
