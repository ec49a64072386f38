#include "backends/cuda/skinny_mma.cuh"

// Small products: what counts is how soon everything has been asked for. Each warp has k's of its own, and copies what
// it needs of a and b to its own shared memory, as far ahead as there is room, so that no warp waits for another before
// the sums meet. Rows may begin anywhere: whole vectors of 16 bytes are copied, and what is read of them is shifted
// into place. The warps of a block share k, and so do the blocks of a cluster.

namespace xpuruntime::cuda {
namespace {

constexpr int depth = 64;  // k's of a step

/// `tiles` eights of rows of a, by 16 columns of b times `groups`.
template <bool along_k_, bool any_, int tiles_, int groups_>
struct Shape {
  static constexpr bool along_k = along_k_;
  static constexpr bool any = any_;  // rows that do not begin on 16 bytes, or are not whole vectors
  static constexpr int tiles = tiles_;
  static constexpr int rows = 8 * tiles;
  static constexpr int groups = groups_;
  static constexpr int columns = 16 * groups;
  // In vectors of 16 bytes.
  static constexpr int k_pitch = any ? 12 : 8;
  static constexpr int n_pitch = columns / 8 + (any ? 1 : 0);
  static constexpr int left = rows * k_pitch;
  static constexpr int right = along_k ? columns * k_pitch : depth * n_pitch + depth / 4;
  static constexpr int step_bytes = 16 * (left + right);
  static constexpr int room = 220 * 1024 / step_bytes;  // in steps
  static constexpr int most_warps = room >= 32 && tiles * groups <= 8 ? 16 : 8;
  static constexpr int stages = room / most_warps < 3 ? room / most_warps : 3;
  static_assert(stages > 0);
  static constexpr int pitch = sum_pitch<columns>;
  static constexpr int warp_bytes = stages * step_bytes > 4 * rows* pitch ? stages* step_bytes : 4 * rows* pitch;
};

// Where vectors are in shared memory, so that threads that read together find theirs on different banks.
template <class Shape>
__device__ inline int place_along_k(int row, int vector) {
  return row * Shape::k_pitch + (Shape::any ? vector : vector ^ (row & 1) << 2);
}
template <class Shape>
__device__ inline int place_along_n(int row, int vector) {
  return row * Shape::n_pitch + row / 8 * 2 + vector;
}

/// The first `bytes` of 16 on their way to shared memory, and zeros for the others.
__device__ inline void copy_vector(unsigned to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}

/// A warp copies `lines` lines of `vectors` vectors, and one more of each where they begin anywhere. No more than
/// `length` elements of each line exist. Of lines past `count` there are zeros, or nothing is copied unless `zeros`.
/// What the tensor's last line, `count` - 1, has in the vector in which it ends is left to LastElements.
template <bool any, bool zeros, int lines, int vectors, class T, class Place>
__device__ inline void copy_lines(const T* first, std::int64_t step, int count, int length, Place place) {
  const int lane = threadIdx.x % 32;
  if constexpr (any) {
    const auto copy = [&](int line, int vector) {
      if (!zeros && line >= count) return;
      const auto address = reinterpret_cast<std::uintptr_t>(first + (line < count ? line : 0) * step);
      const auto* from = reinterpret_cast<const uint4*>(address & ~std::uintptr_t{15});
      int bytes = static_cast<int>(address & 15) + 2 * length - 16 * vector;
      bytes = bytes >= 16 ? 16 : bytes > 0 && line + 1 < count ? bytes : 0;
      if (zeros && line >= count) bytes = 0;
      copy_vector(place(line, vector), bytes > 0 ? from + vector : from, bytes);
    };
#pragma unroll
    for (int i = 0; i < lines * vectors / 32; ++i) copy(i * (32 / vectors) + lane / vectors, lane % vectors);
#pragma unroll 1
    for (int line = lane; line < lines; line += 32) copy(line, vectors);
  } else {
    const bool exists = 8 * (lane % vectors) < length;
    const T* const from = first + (exists ? 8 * (lane % vectors) : 0);
#pragma unroll
    for (int i = 0; i < lines * vectors / 32; ++i) {
      const int line = i * (32 / vectors) + lane / vectors;
      if (line < count) {
        copy_vector(place(line, lane % vectors), from + line * step, exists ? 16 : 0);
      } else if (zeros) {
        copy_vector(place(line, lane % vectors), first, 0);
      }
    }
  }
}

/// The elements of a tensor in the vector of 16 bytes in which it ends: what is behind them belongs to nobody, and no
/// copy is as short as they may be. Up to seven threads of a warp have one each.
struct LastElements {
  unsigned to = 0xffffffffu;
  unsigned short value = 0;

  /// `length` elements of the last line are left, `vectors` vectors of it were copied.
  template <class T, class Place>
  __device__ void load(const T* line, int length, int vectors, Place place) {
    const auto address = reinterpret_cast<std::uintptr_t>(line);
    const int bytes = static_cast<int>(address & 15) + 2 * length, vector = bytes / 16;
    const int lane = threadIdx.x % 32;
    if (vector >= vectors || 2 * lane >= bytes % 16) return;
    to = place(vector) + 2 * lane;
    value = reinterpret_cast<const unsigned short*>((address & ~std::uintptr_t{15}) + 16 * vector)[lane];
  }
  __device__ void store() const {
    if (to != 0xffffffffu) asm volatile("st.shared.u16 [%0], %1;" : : "r"(to), "h"(value) : "memory");
  }
};

/// How many elements into its vector of 16 bytes a row begins.
template <class T>
__device__ inline int shift_of(const T* first, std::int64_t step, int row) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(first) / 2 + static_cast<unsigned>(step) * row) & 7;
}

/// What a block multiplies: its k's of all rows and of its columns.
template <class T>
struct Part {
  const T* a;
  const T* b;
  std::int64_t a_step;  // from row to row
  std::int64_t b_step;  // from column to column, or from k to k
  int rows;
  int columns;  // from the block's first on
  int rest;     // k's from the block's first on
};

template <class Shape, class T>
__device__ inline void copy_step(const Part<T>& part, int at, unsigned to) {
  const int rest = part.rest - at;
  const auto left = [&](int row, int vector) { return to + 16 * place_along_k<Shape>(row, vector); };
  const auto right = [&](int row, int vector) {
    return to + 16 * (Shape::left +
                      (Shape::along_k ? place_along_k<Shape>(row, vector) : place_along_n<Shape>(row, vector)));
  };
  if constexpr (Shape::along_k) {
    copy_lines<Shape::any, false, Shape::columns, 8>(part.b + at, part.b_step, part.columns, rest, right);
  } else {  // of k's past the last there are zeros, whatever a has there
    const T* b = part.b + at * part.b_step;
    copy_lines<Shape::any, true, depth, Shape::columns / 8>(b, part.b_step, rest, part.columns, right);
  }
  copy_lines<Shape::any, false, Shape::rows, 8>(part.a + at, part.a_step, part.rows, rest, left);
}

/// Those of a step of which not all exist: of a, and of b.
template <class Shape, class T>
__device__ inline void load_last(const Part<T>& part, int at, unsigned to, LastElements (&last)[2]) {
  const int rest = part.rest - at, row = part.rows - 1;
  last[0].load(part.a + row * part.a_step + at, rest, 9,
               [&](int vector) { return to + 16 * place_along_k<Shape>(row, vector); });
  const unsigned right = to + 16 * Shape::left;
  if constexpr (Shape::along_k) {
    const int column = part.columns - 1;
    if (column >= Shape::columns) return;
    last[1].load(part.b + column * part.b_step + at, rest, 9,
                 [&](int vector) { return right + 16 * place_along_k<Shape>(column, vector); });
  } else if (rest <= depth) {
    last[1].load(part.b + (at + rest - 1) * part.b_step, part.columns, Shape::n_pitch,
                 [&](int vector) { return right + 16 * place_along_n<Shape>(rest - 1, vector); });
  }
}

/// Eight k's of a row.
template <class Shape>
__device__ inline Eight read_along_k(const uint4* rows, int row, int vector, int shift) {
  if constexpr (!Shape::any) return as_eight(rows[place_along_k<Shape>(row, vector)]);
  return shifted(rows[place_along_k<Shape>(row, vector)], rows[place_along_k<Shape>(row, vector + 1)], shift);
}

/// 32 columns of 32 k's, from `column` and `at` on.
template <class Shape, class T>
__device__ inline Weights<Shape::along_k, 2> read_right(const uint4* right, const Part<T>& part, int column, int at) {
  Weights<Shape::along_k, 2> out;
  const int group = threadIdx.x % 32 / 4;
  const int own = threadIdx.x % 4;
  if constexpr (Shape::along_k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = column + group + 8 * i;
      const Eight v = read_along_k<Shape>(right, c, at / 8 + own, shift_of(part.b, part.b_step, c));
#pragma unroll
      for (int j = 0; j < 4; ++j) out.words[i][j] = v.pairs[j];
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = at + own * 8 + i;
      const auto* line = reinterpret_cast<const unsigned*>(right + place_along_n<Shape>(row, 0));
      if constexpr (Shape::any) {
        const int first = shift_of(part.b, part.b_step, row) + column + 4 * group;
        line += first / 2;
        const unsigned w[3] = {line[0], line[1], line[2]};
        out.words[i][0] = __funnelshift_r(w[0], w[1], first % 2 * 16);
        out.words[i][1] = __funnelshift_r(w[1], w[2], first % 2 * 16);
      } else {
        const uint2 v = *reinterpret_cast<const uint2*>(line + (column + 4 * group) / 2);
        out.words[i][0] = v.x;
        out.words[i][1] = v.y;
      }
    }
  }
  return out;
}

template <class Shape, class T>
__device__ inline void multiply_step(const uint4* step, const Part<T>& part,
                                     Sums<2, Shape::tiles> (&sums)[Shape::groups / 2]) {
#pragma unroll 1
  for (int at = 0; at < depth; at += piece) {
    Weights<Shape::along_k, 2> weights[Shape::groups / 2];
#pragma unroll
    for (int g = 0; g < Shape::groups / 2; ++g) weights[g] = read_right<Shape>(step + Shape::left, part, 32 * g, at);
#pragma unroll
    for (int tile = 0; tile < Shape::tiles; ++tile) {
      const int row = 8 * tile + threadIdx.x % 32 / 4;
      const Eight rows = read_along_k<Shape>(step, row, at / 8 + threadIdx.x % 4, shift_of(part.a, part.a_step, row));
#pragma unroll
      for (int g = 0; g < Shape::groups / 2; ++g) {
        multiply_tile<T, Shape::along_k, 2, Shape::tiles>(sums[g], tile, weights[g], rows);
      }
    }
  }
}

template <class T, class Shape>
__global__ void __launch_bounds__(32 * Shape::most_warps, 1)
    tiles_kernel(const SkinnyLaunch p, const ProductPointers x) {
  wait_for_previous();
  extern __shared__ __align__(128) char memory[];
  const int halvings = __ffs(p.split) - 1;  // it is a power of two
  const int rank = blockIdx.x & (p.split - 1);
  const int first_column = (blockIdx.x >> halvings) * Shape::columns;
  const int steps = (p.k + depth - 1) / depth;
  const int begin = (steps * rank >> halvings) * depth;
  const int end = (steps * (rank + 1) >> halvings) * depth;
  Part<T> part;
  part.a_step = p.a.row;
  part.b_step = Shape::along_k ? p.b.column : p.b.row;
  part.a = static_cast<const T*>(x.a) + begin;
  part.b = static_cast<const T*>(x.b) +
           (Shape::along_k ? first_column * part.b_step + begin : begin * part.b_step + first_column);
  part.rows = p.m;
  part.columns = p.n - first_column;
  part.rest = p.k - begin;
  const int length = end - begin;
  const int warps = blockDim.x / 32;
  const int warp = threadIdx.x / 32;
  char* own = memory + warp * Shape::warp_bytes;

  // Every step is asked for `stages` - 1 steps before it is multiplied.
  int to = 0, next = warp * depth;
  const int turn = warps * depth;
  const auto following = [](int place) {
    return place + Shape::step_bytes == Shape::stages * Shape::step_bytes ? 0 : place + Shape::step_bytes;
  };
  Sums<2, Shape::tiles> sums[Shape::groups / 2] = {};
#pragma unroll 1
  for (int at = next - (Shape::stages - 1) * turn; at < length; at += turn, next += turn) {
    if (next < length) copy_step<Shape>(part, next, shared_address(own + to));
    asm volatile("cp.async.commit_group;" ::: "memory");
    to = following(to);
    if (at < 0) continue;
    LastElements last[2];
    const bool ends = Shape::any && part.rest - at < depth + 8;
    if (ends) load_last<Shape>(part, at, shared_address(own + to), last);
    asm volatile("cp.async.wait_group %0;" : : "n"(Shape::stages - 1) : "memory");
    if (ends) {
      __syncwarp();  // zeros were copied by others
      last[0].store();
      last[1].store();
    }
    __syncwarp();
    multiply_step<Shape>(reinterpret_cast<const uint4*>(own + to), part, sums);
    __syncwarp();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  auto* slot = reinterpret_cast<float*>(own);  // the sums take the steps' place
#pragma unroll
  for (int g = 0; g < Shape::groups / 2; ++g) put_sums<Shape::along_k, Shape::columns>(slot + 32 * g, sums[g]);
  __syncthreads();
  // Four neighbouring columns a thread: the block's sums, and then those of all blocks.
  constexpr int quads = Shape::columns / 4;
  const auto place = [](int o) { return (o / quads * Shape::pitch + o % quads * 4) * 4; };
  const auto add_warps = [&](int at) {
    float4 sum = {};
#pragma unroll 1
    for (int w = 0; w < warps; w += 4) {
      float4 parts[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        parts[i] = *reinterpret_cast<const float4*>(memory + (w + i) * Shape::warp_bytes + at);
#pragma unroll
      for (int i = 0; i < 4; ++i) add(sum, parts[i]);
    }
    return sum;
  };
  const int outputs = p.m * quads;
  if (p.split > 1) {
#pragma unroll 1
    for (int o = threadIdx.x; o < outputs; o += blockDim.x) {
      *reinterpret_cast<float4*>(memory + place(o)) = add_warps(place(o));
    }
    sync_blocks();
  }
  const int step = p.split * blockDim.x;
  bool reads = p.split > 1;
#pragma unroll 1
  for (int o = rank * blockDim.x + threadIdx.x; o < outputs; o += step) {
    const float4 sum =
        p.split > 1 ? add_up(reinterpret_cast<const float4*>(memory + place(o)), p.split) : add_warps(place(o));
    if (reads && o + step >= outputs) {
      reads = false;
      leave_blocks();
    }
    const int column = o % quads * 4;
    finish_four(p, x, o / quads, first_column + column, part.columns - column, sum);
  }
  if (reads) leave_blocks();
  if (p.split > 1) wait_for_readers();
}

template <class T, class Shape>
cudaError_t launch_as(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  constexpr auto kernel = tiles_kernel<T, Shape>;
  const int bytes = launch.warps * Shape::warp_bytes;
  if (const cudaError_t error = allow_memory<kernel>(bytes); error != cudaSuccess) return error;
  const auto clusters = static_cast<unsigned>((launch.n + Shape::columns - 1) / Shape::columns);
  LaunchConfig how(clusters * static_cast<unsigned>(launch.split), 32 * launch.warps, stream);
  how.with_shared_memory(bytes).in_clusters_of(launch.split).overlapping_previous();
  return queue(kernel, how, launch, pointers);
}

/// Calls `use` with the launch's shape.
template <class Use>
auto with_shape(const SkinnyLaunch& launch, Use&& use) {
  const auto with_layout = [&](auto tiles, auto groups) {
    constexpr int t = decltype(tiles)::get, g = decltype(groups)::get;
    if (launch.along_k) return launch.vector ? use(Shape<true, false, t, g>{}) : use(Shape<true, true, t, g>{});
    return launch.vector ? use(Shape<false, false, t, g>{}) : use(Shape<false, true, t, g>{});
  };
  const auto with_tiles = [&](auto tiles) {
    return launch.tile == 64 ? with_layout(tiles, Constant<4>{}) : with_layout(tiles, Constant<2>{});
  };
  return launch.m > 32   ? with_tiles(Constant<8>{})
         : launch.m > 16 ? with_tiles(Constant<4>{})
         : launch.m > 8  ? with_tiles(Constant<2>{})
                         : with_tiles(Constant<1>{});
}

}  // namespace

TilesLimits tiles_limits(const SkinnyLaunch& launch) {
  return with_shape(launch, [](auto shape) {
    using Shape = decltype(shape);
    return TilesLimits{Shape::most_warps, static_cast<std::uint64_t>(Shape::warp_bytes)};
  });
}

cudaError_t launch_tiles(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream) {
  return with_shape(launch, [&](auto shape) {
    const auto start =
        launch.dtype == DataType::float16 ? launch_as<f16, decltype(shape)> : launch_as<bf16, decltype(shape)>;
    return start(launch, pointers, stream);
  });
}

cudaError_t launch(const SkinnyLaunch& launch, const Pointers& all, cudaStream_t stream) {
  if (launch.m == 0 || launch.n == 0) return cudaSuccess;
  const ProductPointers pointers = {all.inputs[0], all.inputs[1], all.inputs[2], all.output};
  switch (launch.path) {
    case SkinnyPath::tiles:
      return launch_tiles(launch, pointers, stream);
    case SkinnyPath::held:
      return launch_held(launch, pointers, stream);
    case SkinnyPath::lanes:
      return launch_lanes(launch, pointers, stream);
    case SkinnyPath::dots:
      return launch_dots(launch, pointers, stream);
    default:
      return launch_columns(launch, pointers, stream);
  }
}

}  // namespace xpuruntime::cuda
