#include <atomic>
#include <climits>

#include "backends/cuda/skinny_mma.cuh"

// b is contiguous along n. Copies to shared memory run several stages ahead of the matrix units, and on through the
// tiles of columns that a block goes through one after the other, so that memory never waits for a sum to be finished.
// A stage is `depth` k's of the block's columns of b and of all rows of a. Warps stand `across` the columns; those that
// share columns take turns in k.

namespace xpuruntime::cuda {
namespace {

constexpr int warps = 8;
constexpr int threads = 32 * warps;

template <int tiles_, int across_>
struct Shape {
  static constexpr int tiles = tiles_;
  static constexpr int across = across_;
  static constexpr int groups = 2;
  static constexpr int columns = 16 * groups * across;
  static constexpr int sharing = warps / across;  // warps on the same columns
  static constexpr int depth = piece * (sharing > 2 ? sharing : 2);
  static constexpr int left_bytes = 8 * tiles * depth * 2;
  static constexpr int right_bytes = columns * depth * 2;
  static constexpr int stage_bytes = left_bytes + right_bytes;
  // On a multiprocessor. More rows need more of its registers, and more of its shared memory for a.
  static constexpr int blocks = tiles > 2 ? 1 : 2;
  static constexpr int room = (blocks == 1 ? 160 : 80) * 1024;
  static constexpr int stages = room / stage_bytes < 3 ? 3 : room / stage_bytes > 8 ? 8 : room / stage_bytes;
  static constexpr int slots = slots_for<columns, tiles>(sharing);
  static constexpr int bytes = stages * stage_bytes + 4 * slots * slot_floats<columns, tiles>;
};

/// Where 16 bytes, number `vector` of a row, are within a matrix in shared memory, so that the threads of a warp that
/// read together find them on different banks. Rows are `row_vectors` long, a multiple of 8.
template <int row_vectors>
__device__ inline int place_along_k(int row, int vector) {
  return (row * row_vectors + (vector ^ (row & 1) << 2)) * 16;
}
template <int row_vectors>
__device__ inline int place_along_n(int row, int vector) {
  return (row * row_vectors + (vector ^ (row >> 3 & 3) << 1)) * 16;
}

/// 16 bytes on their way to shared memory; zeros where there are none to copy.
__device__ inline void copy_16(unsigned to, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}

__device__ inline void end_of_stage() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Until all but the last `pending` stages are here.
template <int pending>
__device__ inline void wait_for_stages() {
  asm volatile("cp.async.wait_group %0;" : : "n"(pending) : "memory");
}

__device__ inline Eight load_eight(const char* address) {
  const uint4 v = *reinterpret_cast<const uint4*>(address);
  return {{v.x, v.y, v.z, v.w}};
}

/// Copies columns of b from `first_column` on, k's from `at` on.
template <class Shape, class T>
__device__ void copy_right(const SkinnyLaunch& p, const T* b, unsigned to, int first_column, int at) {
  constexpr int row_vectors = Shape::columns / 8;
#pragma unroll
  for (int i = 0; i < Shape::right_bytes / 16 / threads; ++i) {
    const int row = (i * threads + static_cast<int>(threadIdx.x)) / row_vectors;
    const int vector = (i * threads + static_cast<int>(threadIdx.x)) % row_vectors;
    const int column = first_column + vector * 8;
    const bool exists = column < p.n && at + row < p.k;
    copy_16(to + place_along_n<row_vectors>(row, vector), exists ? b + (at + row) * p.b.row + column : b, exists);
  }
}

/// Copies the rows of a. Those past the last are left as they are: nothing of their sums is stored.
template <class Shape, class T>
__device__ void copy_left(const SkinnyLaunch& p, const T* a, unsigned to, int at) {
  constexpr int row_vectors = Shape::depth / 8;
#pragma unroll
  for (int i = 0; i < (8 * Shape::tiles * row_vectors + threads - 1) / threads; ++i) {
    const int row = (i * threads + static_cast<int>(threadIdx.x)) / row_vectors;
    const int vector = (i * threads + static_cast<int>(threadIdx.x)) % row_vectors;
    if (row >= p.m) break;
    const bool exists = at + vector * 8 < p.k;
    copy_16(to + place_along_k<row_vectors>(row, vector), exists ? a + row * p.a.row + at + vector * 8 : a, exists);
  }
}

template <class Shape>
__device__ inline Weights<false, Shape::groups> load_right(const char* right, int own_column, int at) {
  Weights<false, Shape::groups> out;
  const int column = own_column + 4 * (threadIdx.x % 32 / 4);
  const int part = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const char* from = right + place_along_n<Shape::columns / 8>(at + part * 8 + i, column / 8) + column % 8 * 2;
    const uint2 v = *reinterpret_cast<const uint2*>(from);
    out.words[i][0] = v.x;
    out.words[i][1] = v.y;
  }
  return out;
}

/// One stage of the warp's columns.
template <class Shape, class T>
__device__ inline void multiply_stage(const char* stage, int warp, int own_column,
                                      Sums<Shape::groups, Shape::tiles>& sums) {
  const int group = threadIdx.x % 32 / 4;
  const int part = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < Shape::depth / piece / Shape::sharing; ++i) {
    const int at = (i * Shape::sharing + warp) * piece;
    const auto right = load_right<Shape>(stage + Shape::left_bytes, own_column, at);
#pragma unroll
    for (int tile = 0; tile < Shape::tiles; ++tile) {
      const Eight left = load_eight(stage + place_along_k<Shape::depth / 8>(8 * tile + group, at / 8 + part));
      multiply_tile<T, false, Shape::groups, Shape::tiles>(sums, tile, right, left);
    }
  }
}

/// Goes through a block's part of k, and then through that of its next tile.
struct Place {
  int tile;
  int at;
};

template <class T, class Shape>
__global__ void __launch_bounds__(threads, Shape::blocks) staged_kernel(const SkinnyLaunch p, const Pointers x) {
  extern __shared__ __align__(128) char memory[];
  auto* slots = reinterpret_cast<float*>(memory + Shape::stages * Shape::stage_bytes);
  const T* a = static_cast<const T*>(x.inputs[0]);
  const T* b = static_cast<const T*>(x.inputs[1]);
  const int rank = blockIdx.x % p.split;
  const int steps = (p.k + Shape::depth - 1) / Shape::depth;
  const int begin = static_cast<int>(static_cast<std::int64_t>(steps) * rank / p.split) * Shape::depth;
  const int end = static_cast<int>(static_cast<std::int64_t>(steps) * (rank + 1) / p.split) * Shape::depth;
  const int tiles = (p.n + Shape::columns - 1) / Shape::columns;
  const int warp = threadIdx.x / 32 / Shape::across;  // of those on the same columns
  const int own_column = threadIdx.x / 32 % Shape::across * (16 * Shape::groups);

  Place next = {static_cast<int>(blockIdx.x) / p.split, begin};
  int to = 0;
  const auto copy_next = [&] {
    if (next.tile < tiles) {
      const unsigned stage = shared_address(memory + to * Shape::stage_bytes);
      copy_right<Shape>(p, b, stage + Shape::left_bytes, next.tile * Shape::columns, next.at);
      copy_left<Shape>(p, a, stage, next.at);
      next.at += Shape::depth;
      if (next.at >= end) next = {next.tile + p.blocks, begin};
    }
    end_of_stage();
    to = to + 1 == Shape::stages ? 0 : to + 1;
  };
#pragma unroll
  for (int i = 0; i < Shape::stages - 1; ++i) copy_next();

  int from = 0;
  for (int tile = static_cast<int>(blockIdx.x) / p.split; tile < tiles; tile += p.blocks) {
    Sums<Shape::groups, Shape::tiles> sums = {};
    for (int at = begin; at < end; at += Shape::depth) {
      wait_for_stages<Shape::stages - 2>();
      __syncthreads();  // all see the stage, and all are done with the one that is filled next
      copy_next();
      multiply_stage<Shape, T>(memory + from * Shape::stage_bytes, warp, own_column, sums);
      from = from + 1 == Shape::stages ? 0 : from + 1;
    }
    meet_and_store<false, Shape::columns>(p, x, slots, sums, Shape::sharing, warp, own_column, tile * Shape::columns,
                                          rank);
  }
  wait_for_stages<0>();
}

/// The columns that a block of the shape has are the launch's `tile`.
template <class Use>
auto with_shape(const SkinnyLaunch& launch, Use&& use) {
  const auto with_tiles = [&](auto count) {
    constexpr int tiles = decltype(count)::get;
    return launch.tile == Shape<tiles, 4>::columns ? use(Shape<tiles, 4>{}) : use(Shape<tiles, 2>{});
  };
  return launch.m > 32   ? with_tiles(Constant<8>{})
         : launch.m > 16 ? with_tiles(Constant<4>{})
         : launch.m > 8  ? with_tiles(Constant<2>{})
                         : with_tiles(Constant<1>{});
}

/// How many clusters run at once: a cluster keeps to one part of the device, and what it leaves of that may be too
/// small for another. One more would start only when others have ended. Asked once for each device; also lets the
/// kernel have its shared memory there.
template <void (*kernel)(SkinnyLaunch, Pointers)>
cudaError_t count_clusters(const ClusterLaunch& how, int split, int& count) {
  constexpr int devices = 16;
  static std::atomic<int> known[devices][most_split];  // 0: not asked yet
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  count = device < devices ? known[device][split - 1].load(std::memory_order_relaxed) : 0;
  if (count > 0) return cudaSuccess;
  const auto bytes = static_cast<int>(how.config.dynamicSmemBytes);
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  count = INT_MAX;
  if (error == cudaSuccess && split > 1) error = cudaOccupancyMaxActiveClusters(&count, kernel, &how.config);
  if (error == cudaSuccess && count == 0) error = cudaErrorInvalidConfiguration;
  if (error == cudaSuccess && device < devices) known[device][split - 1].store(count, std::memory_order_relaxed);
  return error;
}

template <class T, class Shape>
cudaError_t launch_as(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  constexpr auto kernel = staged_kernel<T, Shape>;
  SkinnyLaunch fitting = launch;
  int most = 0;
  const ClusterLaunch asked(launch.blocks, threads, Shape::bytes, launch.split, stream);
  if (const cudaError_t error = count_clusters<kernel>(asked, launch.split, most); error != cudaSuccess) return error;
  fitting.blocks = launch.blocks < most ? launch.blocks : most;
  const ClusterLaunch how(fitting.blocks, threads, Shape::bytes, launch.split, stream);
  return queue_clusters<kernel>(how, fitting, pointers);
}

}  // namespace

std::uint64_t staged_bytes(const SkinnyLaunch& launch) {
  return with_shape(launch, [](auto shape) { return static_cast<std::uint64_t>(decltype(shape)::bytes); });
}

cudaError_t launch_staged(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_shape(launch, [&](auto shape) {
    const auto start =
        launch.dtype == DataType::float16 ? launch_as<f16, decltype(shape)> : launch_as<bf16, decltype(shape)>;
    return start(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
