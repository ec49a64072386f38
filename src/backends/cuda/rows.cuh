#pragma once

#include "backends/cuda/launch.cuh"
#include "backends/cuda/vectors.cuh"

// Rows of neighbours, shared by a part of a warp, a warp, a block or a cluster of blocks. A row is cut where addresses
// are multiples of 16, wherever it begins: into whole vectors, and fewer than two vectors of elements before and behind
// them, of which a thread takes one at most.

namespace xpuruntime::cuda {

/// Where this thread stands among those that share its row.
struct Place {
  std::int64_t row = 0;
  int lanes = 32;
  int lane = 0;
  int blocks = 1;
};

__device__ inline Place place_in(const RowTeam& team) {
  const int thread = static_cast<int>(threadIdx.x);
  if (team.lanes > 32) {
    const auto blocks = static_cast<unsigned>(team.blocks);
    const unsigned row = blockIdx.x / blocks;
    return {row, team.lanes * team.blocks, thread + static_cast<int>(blockIdx.x - row * blocks) * team.lanes,
            team.blocks};
  }
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (RowTeam::block_threads / team.lanes);
  return {first + thread / team.lanes, team.lanes, thread % team.lanes};
}

template <class T>
struct RowCut {
  int before = 0;   // elements ahead of the first whole vector
  int vectors = 0;  // whole ones
  int columns = 0;  // 0 for a row that is not there, whose threads only go along

  __device__ int first_column(int vector) const { return before + vector * per_vector<T>; }
  __device__ int edges() const { return columns - vectors * per_vector<T>; }
  /// The column of the element beside the vectors that a lane takes; `columns` or more where it takes none.
  __device__ int edge(int lane) const { return lane < before ? lane : lane + vectors * per_vector<T>; }
};

template <class T>
__device__ inline RowCut<T> cut_row(const T* row, int columns) {
  const auto into = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(row) / sizeof(T));
  const int before = min(static_cast<int>((0u - into) % per_vector<T>), columns);
  return {before, (columns - before) / per_vector<T>, columns};
}

/// A row to be read and one to be written; `cut` is the input's.
template <class T>
struct RowPair {
  const T* input;
  T* output;
  RowCut<T> cut;

  __device__ RowPair(const RowShape& shape, const Pointers& x, std::int64_t row) {
    const bool there = row < shape.rows;
    input = static_cast<const T*>(x.inputs[0]) + (there ? row * shape.input_stride : 0);
    output = static_cast<T*>(x.output) + (there ? row * shape.output_stride : 0);
    cut = cut_row(input, there ? shape.columns : 0);
  }
};

template <class T, class Use>
__device__ inline void for_values(uint4 bits, Use&& use) {
  float values[per_vector<T>];
  unpack<T>(bits, values);
#pragma unroll
  for (const float value : values) use(value);
}

/// Keeps the compiler from holding on to what it unpacked before: vectors take a half of its registers or less.
template <int count>
__device__ inline void unpack_anew(uint4 (&vectors)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    asm("" : "+r"(vectors[i].x), "+r"(vectors[i].y), "+r"(vectors[i].z), "+r"(vectors[i].w));
  }
}

template <class T>
__device__ inline uint4 filled(float value) {
  float values[per_vector<T>];
#pragma unroll
  for (float& one : values) one = value;
  return pack<T>(values);
}

/// Every `step`-th whole vector from `first` on, with `fill` for what lies behind them.
template <class T, int count>
__device__ inline void load_vectors(const T* row, const RowCut<T>& cut, int first, int step, float fill,
                                    uint4 (&out)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int vector = first + i * step;
    out[i] = vector < cut.vectors ? load_once(row + cut.first_column(vector)) : filled<T>(fill);
  }
}

/// The element beside the vectors that a lane takes, or `fill`.
template <class T>
__device__ inline float load_edge(const T* row, const RowCut<T>& cut, int lane, float fill) {
  const int column = cut.edge(lane);
  return column < cut.columns ? to_float(row[column]) : fill;
}

/// Stores what change(values, i) makes of vector i of those that load_vectors brought. With `whole` they are known to
/// stand on multiples of 16 here too.
template <bool whole = false, class T, int count, class Change>
__device__ inline void store_vectors(T* row, const RowCut<T>& cut, int first, int step, const uint4 (&vectors)[count],
                                     Change&& change) {
  const bool aligned = whole || is_aligned_to_16(row + cut.before);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int vector = first + i * step;
    if (vector >= cut.vectors) continue;
    float values[per_vector<T>];
    unpack<T>(vectors[i], values);
    change(values, i);
    T* to = row + cut.first_column(vector);
    if (aligned) {
      *reinterpret_cast<uint4*>(to) = pack<T>(values);
    } else {
#pragma unroll
      for (int j = 0; j < per_vector<T>; ++j) to[j] = from_float<T>(values[j]);
    }
  }
}
template <class T>
__device__ inline void store_edge(T* row, const RowCut<T>& cut, int lane, float value) {
  const int column = cut.edge(lane);
  if (column < cut.columns) row[column] = from_float<T>(value);
}

/// Goes through this thread's share of a row's vectors, four loads at a time: use(vectors, first).
template <class T, class Use>
__device__ inline void walk_row(const T* row, const RowCut<T>& cut, const Place& place, float fill, Use&& use) {
  constexpr int in_flight = 4;
  for (int first = place.lane; first < cut.vectors; first += in_flight * place.lanes) {
    uint4 vectors[in_flight];
    load_vectors(row, cut, first, place.lanes, fill, vectors);
    use(vectors, first);
  }
}

struct Add {
  static constexpr float neutral = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {  // passes over NaN
  static constexpr float neutral = -HUGE_VALF;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Folds a value of each of `lanes` threads of a warp; all get the result.
template <class Op>
__device__ inline float fold_in_warp(float value, Op op, int lanes = 32) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    if (offset < lanes) value = op(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

/// Folds a value of each thread of the row; all get the result. Every thread of the block takes part, in the same
/// order. `shared` is for this fold alone.
template <class Op>
__device__ inline float fold_across(const Place& place, float value, Op op, float (&shared)[32]) {
  value = fold_in_warp(value, op, place.lanes);
  if (place.lanes <= 32) return value;
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  return fold_in_warp(static_cast<int>(threadIdx.x % 32) < place.lanes / 32 ? shared[threadIdx.x % 32] : Op::neutral,
                      op);
}

/// exp of a difference to a row's largest element, off by up to 4 u and 1.3 |x| u. What is below 2^-126 is 0.
__device__ inline float exp_below_0(float x) {
  constexpr float log2_of_e = 1.44269504f;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * log2_of_e));
  return result;
}

__device__ inline unsigned larger_pair(f16, unsigned a, unsigned b) {
  const __half2 pair = __hmax2(reinterpret_cast<const __half2&>(a), reinterpret_cast<const __half2&>(b));
  return reinterpret_cast<const unsigned&>(pair);
}
__device__ inline unsigned larger_pair(bf16, unsigned a, unsigned b) {
  const __nv_bfloat162 pair =
      __hmax2(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const unsigned&>(pair);
}

/// The largest element, past NaN.
template <class T, int count>
__device__ inline float largest_of(const uint4 (&vectors)[count]) {
  float largest = -HUGE_VALF;
#pragma unroll
  for (const uint4& v : vectors) {
    if constexpr (sizeof(T) == 4) {
      for_values<T>(v, [&](float value) { largest = fmaxf(largest, value); });
    } else {
      float low, high;
      unpack_pair(T{}, larger_pair(T{}, larger_pair(T{}, v.x, v.y), larger_pair(T{}, v.z, v.w)), low, high);
      largest = fmaxf(largest, fmaxf(low, high));
    }
  }
  return largest;
}

// Blocks of a cluster write to each other's shared memory. Before Hopper there are none.

/// To be called at first, so that others know that this block's shared memory is there.
__device__ inline void enter_cluster(const Place& place) {
#if __CUDA_ARCH__ >= 900
  if (place.blocks > 1) asm volatile("barrier.cluster.arrive.relaxed;");
#endif
}

/// Shows a pair of each warp to all blocks that share the row, as shared[number of the warp].
__device__ inline void show_to_row(const Place& place, float2 pair, float2* shared) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  float2* own = shared + place.lane / 32;
#if __CUDA_ARCH__ >= 900
  if (place.blocks > 1) {
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
    if (lane < place.blocks) {
      unsigned there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                   : "=r"(there)
                   : "r"(static_cast<unsigned>(__cvta_generic_to_shared(own))), "r"(lane));
      asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(pair.x), "f"(pair.y) : "memory");
    }
    asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
    return;
  }
#endif
  if (lane == 0) *own = pair;
  __syncthreads();
}

/// The sum of exponentials of elements that come one after the other, relative to the largest so far.
struct Exponentials {
  static constexpr int most_warps = 32 * RowTeam::most_blocks;
  float highest = -HUGE_VALF;
  float sum = 0;

  /// With nothing but -infinity and NaN so far there is no largest element to take off.
  __device__ float base() const { return highest == -HUGE_VALF ? 0 : highest; }

  /// -infinity adds nothing.
  template <class T, int count>
  __device__ void add(uint4 (&vectors)[count]) {
    rise_to(fmaxf(highest, largest_of<T>(vectors)));
    add_below<T>(vectors);
  }
  __device__ void add(float value) {
    rise_to(fmaxf(highest, value));
    sum += exp_below_0(value - base());
  }

  /// None of them is above the highest.
  template <class T, int count>
  __device__ void add_below(uint4 (&vectors)[count]) {
    unpack_anew(vectors);
#pragma unroll
    for (int i = 0; i < count; ++i) for_values<T>(vectors[i], [&](float value) { sum += exp_below_0(value - base()); });
  }

  __device__ void rise_to(float now) {
    if (now == highest) return;
    sum *= exp_below_0(highest - now);
    highest = now;
  }

  /// Over all threads of the row. Every thread of the block, or cluster, takes part; `shared` is for this alone.
  __device__ void fold(const Place& place, float2 (&shared)[most_warps]) {
    rise_to(fold_in_warp(highest, Larger{}, place.lanes));
    sum = fold_in_warp(sum, Add{}, place.lanes);
    if (place.lanes <= 32) return;
    show_to_row(place, make_float2(highest, sum), shared);
    const int lane = static_cast<int>(threadIdx.x % 32), warps = place.lanes / 32;
    for (int i = lane; i < warps; i += 32) highest = fmaxf(highest, shared[i].x);
    highest = fold_in_warp(highest, Larger{});
    sum = 0;
    for (int i = lane; i < warps; i += 32) sum += shared[i].y * exp_below_0(shared[i].x - highest);
    sum = fold_in_warp(sum, Add{});
  }
};

/// Whether a tensor's rows, or its only one, begin on multiples of 16 bytes.
template <class T>
bool is_whole(const void* data, std::int64_t stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride % per_vector<T> == 0;
}
template <class T>
bool has_whole_rows(const RowLaunch& launch, const Pointers& x) {
  return launch.shape.columns % per_vector<T> == 0 && is_whole<T>(x.inputs[0], launch.shape.input_stride) &&
         is_whole<T>(x.output, launch.shape.output_stride);
}

}  // namespace xpuruntime::cuda
