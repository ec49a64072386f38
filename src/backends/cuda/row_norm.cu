#include "backends/cuda/rows.cuh"

namespace xpuruntime::cuda {
namespace {

/// A weight or a bias. With `kept` a thread holds its part, which is the same in all rows.
template <class T, int held, bool kept>
struct Parameters {
  const void* data;
  DataType dtype;
  uint4 vectors[kept ? held : 1];

  __device__ Parameters(const void* from, DataType type, int columns, const Place& place, float without)
      : data(from), dtype(type) {
    if constexpr (kept) {
#pragma unroll
      for (int i = 0; i < held; ++i) {
        const int column = (place.lane + i * place.lanes) * per_vector<T>;
        const bool there = from != nullptr && column < columns;
        vectors[i] = there ? load_shared_by_blocks(static_cast<const T*>(from) + column) : filled<T>(without);
      }
    }
  }

  template <class P>
  __device__ static void load(const P* from, float (&out)[per_vector<T>]) {
    if (is_aligned_to_16(from)) return load_neighbours(from, out);
#pragma unroll
    for (int j = 0; j < per_vector<T>; ++j) out[j] = to_float(from[j]);
  }

  /// Those beside a thread's vector `i`, which begins at `column`; false where there are none.
  __device__ bool get(int i, int column, float (&out)[per_vector<T>]) const {
    if constexpr (kept) {
      unpack<T>(vectors[i], out);
    } else if (data == nullptr) {
      return false;
    } else if (dtype == DataType::float32) {
      load(static_cast<const float*>(data) + column, out);
    } else {
      load(static_cast<const T*>(data) + column, out);
    }
    return true;
  }
  __device__ float get_one(int column, float without) const {
    if (data == nullptr) return without;
    return dtype == DataType::float32 ? static_cast<const float*>(data)[column]
                                      : to_float(static_cast<const T*>(data)[column]);
  }
};

/// What a thread has of a row. With `adds` it is that of a sum, which is rounded before it is normalised and stored
/// too. Every element is read before it is written, so that results may lie over inputs.
template <class T, bool adds, int count, bool whole>
struct Share {
  RowPair<T> rows;
  const T* residual = nullptr;
  T* sums = nullptr;
  uint4 vectors[count];
  uint4 added[adds ? count : 1];
  float edge = 0;

  __device__ Share(const RowLaunch& p, const Pointers& x, std::int64_t row) : rows(p.shape, x, row) {
    if constexpr (whole) rows.cut = {0, rows.cut.columns / per_vector<T>, rows.cut.columns};
    if constexpr (adds) {
      const std::int64_t at = row < p.shape.rows ? row : 0;
      residual = static_cast<const T*>(x.inputs[1]) + at * p.residual_stride;
      sums = static_cast<T*>(x.second_output) + at * p.sum_stride;
    }
  }

  __device__ void load(int first, int step) {
    load_vectors(rows.input, rows.cut, first, step, 0, vectors);
    if constexpr (adds && !whole) {
      if (!is_aligned_to_16(residual + rows.cut.before)) return load_added_by_elements(first, step);
    }
    if constexpr (adds) load_vectors(residual, rows.cut, first, step, 0, added);
  }
  __device__ void load_added_by_elements(int first, int step) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      float values[per_vector<T>] = {};
      if (first + i * step < rows.cut.vectors) {
        const T* from = residual + rows.cut.first_column(first + i * step);
#pragma unroll
        for (int j = 0; j < per_vector<T>; ++j) values[j] = to_float(from[j]);
      }
      added[i] = pack<T>(values);
    }
  }
  __device__ void load_edge(int lane) {
    if constexpr (whole) return;
    edge = cuda::load_edge(rows.input, rows.cut, lane, 0);
    if constexpr (adds) edge = to_float(from_float<T>(edge + cuda::load_edge(residual, rows.cut, lane, 0)));
  }

  __device__ void add_up() {
    if constexpr (adds) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        float values[per_vector<T>], others[per_vector<T>];
        unpack<T>(vectors[i], values);
        unpack<T>(added[i], others);
#pragma unroll
        for (int j = 0; j < per_vector<T>; ++j) values[j] += others[j];
        vectors[i] = pack<T>(values);
      }
    }
  }

  __device__ float sum() const {  // what lies outside the row is 0
    float sum = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) for_values<T>(vectors[i], [&](float value) { sum += value; });
    return sum;
  }
  __device__ float squares(float mean, int first, int step) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (first + i * step >= rows.cut.vectors) continue;
      for_values<T>(vectors[i], [&](float value) { sum = fmaf(value - mean, value - mean, sum); });
    }
    return sum;
  }
  __device__ float square_of_edge(float mean, int lane) const {
    return whole || rows.cut.edge(lane) >= rows.cut.columns ? 0 : (edge - mean) * (edge - mean);
  }

  template <class Parts>
  __device__ void store(int first, int step, float mean, float scale, const Parts& weight, const Parts& bias) const {
    if constexpr (adds) store_vectors<whole>(sums, rows.cut, first, step, vectors, [](auto&, int) {});
    store_vectors<whole>(rows.output, rows.cut, first, step, vectors, [&](float(&values)[per_vector<T>], int i) {
      const int column = rows.cut.first_column(first + i * step);
      float parameters[per_vector<T>];
#pragma unroll
      for (float& value : values) value = (value - mean) * scale;
      if (weight.get(i, column, parameters)) {
#pragma unroll
        for (int j = 0; j < per_vector<T>; ++j) values[j] *= parameters[j];
      }
      if constexpr (!adds) {
        if (!bias.get(i, column, parameters)) return;
#pragma unroll
        for (int j = 0; j < per_vector<T>; ++j) values[j] += parameters[j];
      }
    });
  }
  template <class Parts>
  __device__ void store_edge(int lane, float mean, float scale, const Parts& weight, const Parts& bias) const {
    const int column = rows.cut.edge(lane);
    if (whole || column >= rows.cut.columns) return;
    if constexpr (adds) sums[column] = from_float<T>(edge);
    rows.output[column] =
        from_float<T>((edge - mean) * scale * weight.get_one(column, 1) + (adds ? 0 : bias.get_one(column, 0)));
  }
};

/// Of the elements that a warp has.
struct Moments {
  float mean = 0;
  float squares = 0;  // of differences to the mean

  /// Joins those of the warps of a row. `count_of` says how many elements a warp has.
  template <class CountOf>
  __device__ void fold(const RowLaunch& p, const Place& place, float2 (&shared)[32], CountOf&& count_of) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (lane == 0) shared[threadIdx.x / 32] = make_float2(mean, squares);
    __syncthreads();
    const bool there = lane < place.lanes / 32;
    const float2 part = there ? shared[lane] : make_float2(0, 0);
    const float count = there ? count_of(lane) : 0;
    mean = fold_in_warp(count * part.x, Add{}) / static_cast<float>(p.shape.columns);
    squares = fold_in_warp(part.y + count * (part.x - mean) * (part.x - mean), Add{});
  }
};

__device__ inline float scale_of(const RowLaunch& p, float squares) {
  if (p.op == OpId::normalize) {
    const float norm = sqrtf(squares);
    return 1 / (norm < p.eps ? p.eps : norm);  // NaN is not below eps, and stays
  }
  return 1 / sqrtf(squares / static_cast<float>(p.shape.columns) + p.eps);
}

/// Normalises and stores a row that its threads hold. `shared` is for this row alone.
template <class T, bool adds, int held, bool whole, class Parts>
__device__ void normalise(const RowLaunch& p, const Place& place, Share<T, adds, held, whole>& share,
                          float2 (&shared)[32], const Parts& weight, const Parts& bias) {
  share.add_up();
  const auto count_of = [&](int warp) {
    if (place.lanes <= 32) return static_cast<float>(share.rows.cut.columns);
    int count = 0;
#pragma unroll
    for (int i = 0; i < held; ++i) {
      count += min(max(share.rows.cut.vectors - i * place.lanes - warp * 32, 0), 32) * per_vector<T>;
    }
    return static_cast<float>(!whole && warp == 0 ? count + share.rows.cut.edges() : count);
  };
  Moments m;
  if (!adds && p.op == OpId::layer_norm) {
    const float count = count_of(place.lane / 32), sum = fold_in_warp(share.sum() + share.edge, Add{}, place.lanes);
    if (count > 0) m.mean = sum / count;
    unpack_anew(share.vectors);
  }
  m.squares = share.squares(m.mean, place.lane, place.lanes) + share.square_of_edge(m.mean, place.lane);
  m.squares = fold_in_warp(m.squares, Add{}, place.lanes);
  if (place.lanes > 32) m.fold(p, place, shared, count_of);
  unpack_anew(share.vectors);
  const float scale = scale_of(p, m.squares);
  share.store(place.lane, place.lanes, m.mean, scale, weight, bias);
  share.store_edge(place.lane, m.mean, scale, weight, bias);
}

/// Teams go from row to row. While they normalise one, the next is on its way.
template <class T, bool adds, int held, bool whole>
__global__ void __launch_bounds__(held == 1 ? 1024 : 512, 1) held_norm(const RowLaunch p, const Pointers x) {
  wait_for_previous();
  __shared__ float2 shared[2][32];
  const Place place = place_in(p.team);
  const Parameters<T, held, whole> weight(x.inputs[adds ? 2 : 1], p.parameters[0], p.shape.columns, place, 1);
  const Parameters<T, held, whole> bias(adds ? nullptr : x.inputs[2], p.parameters[1], p.shape.columns, place, 0);
  const std::int64_t each = place.lanes > 32 ? 1 : RowTeam::block_threads / place.lanes, step = each * gridDim.x;
  using Own = Share<T, adds, held, whole>;
  Own share(p, x, place.row);
  share.load(place.lane, place.lanes);
  share.load_edge(place.lane);
  int turn = 0;  // a warp may still read what was shared for the row before
  for (std::int64_t row = place.row, first = each * blockIdx.x;; turn ^= 1) {
    row += step;
    first += step;
    Own next(p, x, row);
    next.load(place.lane, place.lanes);
    next.load_edge(place.lane);
    normalise(p, place, share, shared[turn], weight, bias);
    if (first >= p.shape.rows) return;
    share = next;
  }
}

/// A row for each block and a vector for each thread, without a mean. Its code is short, as most of what a few rows
/// take is the time until code and data come.
template <class T, bool adds>
__global__ void __launch_bounds__(1024) few_norms(const RowLaunch p, const Pointers x) {
  wait_for_previous();
  __shared__ float shared[32];
  const Place place{blockIdx.x, static_cast<int>(blockDim.x), static_cast<int>(threadIdx.x)};
  const int column = place.lane * per_vector<T>;
  const bool there = column < p.shape.columns;
  const void* weights = x.inputs[adds ? 2 : 1];
  uint4 vector = {}, residual = {}, weight = filled<T>(1);
  if (there) {
    vector = load_once(static_cast<const T*>(x.inputs[0]) + place.row * p.shape.input_stride + column);
    if (adds) residual = load_once(static_cast<const T*>(x.inputs[1]) + place.row * p.residual_stride + column);
    if (weights != nullptr) weight = load_shared_by_blocks(static_cast<const T*>(weights) + column);
  }
  float values[per_vector<T>], others[per_vector<T>], squares = 0;
  unpack<T>(vector, values);
  if (adds) {
    unpack<T>(residual, others);
#pragma unroll
    for (int j = 0; j < per_vector<T>; ++j) values[j] += others[j];
    vector = pack<T>(values);
    unpack<T>(vector, values);
    T* sums = static_cast<T*>(x.second_output) + place.row * p.sum_stride + column;
    if (there) *reinterpret_cast<uint4*>(sums) = vector;
  }
#pragma unroll
  for (const float value : values) squares = fmaf(value, value, squares);
  const float scale = scale_of(p, fold_across(place, squares, Add{}, shared));
  if (!there) return;
  unpack<T>(weight, others);
#pragma unroll
  for (int j = 0; j < per_vector<T>; ++j) values[j] = values[j] * scale * others[j];
  *reinterpret_cast<uint4*>(static_cast<T*>(x.output) + place.row * p.shape.output_stride + column) = pack<T>(values);
}

/// What a thread of single_norm has of a weight or a bias beside one of its vectors.
template <class T>
__device__ inline void load_beside(const void* data, int column, float without, float (&out)[per_vector<T>]) {
  unpack<T>(data != nullptr ? load_shared_by_blocks(static_cast<const T*>(data) + column) : filled<T>(without), out);
}

/// A row for each block or warp, and many of them at once: they hide each other's waits, so little code counts most.
template <class T, bool adds, bool centred, bool by_warp>
__global__ void __launch_bounds__(512, 2) single_norm(const RowLaunch p, const Pointers x) {
  wait_for_previous();
  constexpr int held = 4, width = per_vector<T>;
  __shared__ float shared[2][32];
  const int thread = static_cast<int>(threadIdx.x), lanes = by_warp ? 32 : static_cast<int>(blockDim.x);
  const std::int64_t first = by_warp ? static_cast<std::int64_t>(blockIdx.x) * (RowTeam::block_threads / 32) : 0;
  const Place place{by_warp ? first + thread / 32 : blockIdx.x, lanes, by_warp ? thread % 32 : thread};
  if (by_warp && place.row >= p.shape.rows) return;
  const auto column = [&](int i) { return (place.lane + i * lanes) * width; };
  const auto load = [&](const void* data, std::int64_t stride, uint4(&out)[held]) {
    const T* row = static_cast<const T*>(data) + place.row * stride;
#pragma unroll
    for (int i = 0; i < held; ++i) out[i] = column(i) < p.shape.columns ? load_once(row + column(i)) : uint4{};
  };
  const auto store = [&](void* data, std::int64_t stride, int i, uint4 vector) {
    if (column(i) < p.shape.columns)
      *reinterpret_cast<uint4*>(static_cast<T*>(data) + place.row * stride + column(i)) = vector;
  };
  uint4 vectors[held], added[adds ? held : 1];
  load(x.inputs[0], p.shape.input_stride, vectors);
  if constexpr (adds) load(x.inputs[1], p.residual_stride, added);
  float values[held][width], sum = 0, squares = 0, mean = 0;
#pragma unroll
  for (int i = 0; i < held; ++i) {
    unpack<T>(vectors[i], values[i]);
    if constexpr (adds) {
      float others[width];
      unpack<T>(added[i], others);
#pragma unroll
      for (int j = 0; j < width; ++j) values[i][j] += others[j];
      const uint4 rounded = pack<T>(values[i]);
      store(x.second_output, p.sum_stride, i, rounded);
      unpack<T>(rounded, values[i]);
    }
#pragma unroll
    for (int j = 0; centred && j < width; j += 2) sum += values[i][j] + values[i][j + 1];
  }
  const float inverse = 1 / static_cast<float>(p.shape.columns);
  if (centred) mean = fold_across(place, sum, Add{}, shared[0]) * inverse;
#pragma unroll
  for (int i = 0; i < held; ++i) {
    float part = 0;
#pragma unroll
    for (float& value : values[i]) {
      if (centred) value -= mean;
      part = fmaf(value, value, part);
    }
    if (!centred || column(i) < p.shape.columns) squares += part;
  }
  squares = fold_across(place, squares, Add{}, shared[1]);
  // Off by 2^-22, and shorter than a division and a root: what is centred computes the most.
  const bool fast = centred && sizeof(T) == 2;
  const float scale = fast ? rsqrtf(fmaf(squares, inverse, p.eps)) : scale_of(p, squares);
#pragma unroll
  for (int i = 0; i < held; ++i) {
    if (column(i) >= p.shape.columns) continue;
    float weight[width], bias[width];
    load_beside<T>(x.inputs[adds ? 2 : 1], column(i), 1, weight);
    load_beside<T>(adds ? nullptr : x.inputs[2], column(i), -0.0f, bias);  // which leaves -0 as it is
#pragma unroll
    for (int j = 0; j < width; ++j) values[i][j] = fmaf(values[i][j] * scale, weight[j], bias[j]);
    store(x.output, p.shape.output_stride, i, pack<T>(values[i]));
  }
}

/// Reads a row twice, or three times where it is centred, mostly from L2.
template <class T, bool adds>
__global__ void __launch_bounds__(512, 2) long_norm(const RowLaunch p, const Pointers x) {
  wait_for_previous();
  constexpr int in_flight = adds ? 2 : 4;
  __shared__ float shared[2][32];
  const Place place = place_in(p.team);
  const Parameters<T, in_flight, false> weight(x.inputs[adds ? 2 : 1], p.parameters[0], p.shape.columns, place, 1);
  const Parameters<T, in_flight, false> bias(adds ? nullptr : x.inputs[2], p.parameters[1], p.shape.columns, place, 0);
  Share<T, adds, in_flight, false> share(p, x, place.row);
  share.load_edge(place.lane);
  const auto walk = [&](auto&& use) {
    for (int first = place.lane; first < share.rows.cut.vectors; first += in_flight * place.lanes) {
      share.load(first, place.lanes);
      share.add_up();
      use(first);
    }
  };
  float mean = 0, sum = share.edge;
  if (!adds && p.op == OpId::layer_norm) {
    walk([&](int) { sum += share.sum(); });
    mean = fold_across(place, sum, Add{}, shared[0]) / static_cast<float>(p.shape.columns);
  }
  sum = share.square_of_edge(mean, place.lane);
  walk([&](int first) { sum += share.squares(mean, first, place.lanes); });
  const float scale = scale_of(p, fold_across(place, sum, Add{}, shared[1]));
  walk([&](int first) { share.store(first, place.lanes, mean, scale, weight, bias); });
  share.store_edge(place.lane, mean, scale, weight, bias);
}

/// Whether all is whole vectors of one dtype, so that threads can keep their parts of weight and bias.
template <class T, bool adds>
bool all_whole(const RowLaunch& launch, const Pointers& x) {
  bool whole = has_whole_rows<T>(launch, x);
  if (adds) {
    whole =
        whole && is_whole<T>(x.inputs[1], launch.residual_stride) && is_whole<T>(x.second_output, launch.sum_stride);
  }
  for (int i = 0; i < (adds ? 1 : 2); ++i) {
    const void* data = x.inputs[i + (adds ? 2 : 1)];
    whole = whole && (data == nullptr || (launch.parameters[i] == launch.dtype && is_whole<T>(data, 0)));
  }
  return whole;
}

template <class T, bool adds, bool whole>
cudaError_t launch_as(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t needed = launch.team.blocks_for(launch.shape.rows);
  const std::int64_t fitting = needed < launch.most_blocks ? needed : launch.most_blocks;
  const auto with = [&](void (*kernel)(RowLaunch, Pointers), std::int64_t blocks) {
    return queue_overlapping(kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(launch.team.threads()),
                             launch, pointers, stream);
  };
  switch (launch.team.held) {
    case 0:
      return with(long_norm<T, adds>, needed);
    case 1:
      if (whole && needed <= fitting && launch.team.lanes > 32 && launch.op != OpId::layer_norm) {
        return with(few_norms<T, adds>, needed);
      }
      return with(held_norm<T, adds, 1, whole>, fitting);
    case 2:
      return with(held_norm<T, adds, 2, whole>, fitting);
    default:
      if (whole && needed > fitting) {
        const bool by_warp = launch.team.lanes == 32;
        if (!adds && launch.op == OpId::layer_norm)
          return with(by_warp ? single_norm<T, false, true, true> : single_norm<T, false, true, false>, needed);
        return with(by_warp ? single_norm<T, adds, false, true> : single_norm<T, adds, false, false>, needed);
      }
      return with(held_norm<T, adds, 4, whole>, fitting);
  }
}

template <class T, bool adds>
cudaError_t launch_as(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return all_whole<T, adds>(launch, pointers) ? launch_as<T, adds, true>(launch, pointers, stream)
                                              : launch_as<T, adds, false>(launch, pointers, stream);
}

}  // namespace

cudaError_t launch_norm(const RowLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_type(launch.dtype, [&](auto element) {
    using T = decltype(element);
    return launch.op == OpId::add_rms_norm ? launch_as<T, true>(launch, pointers, stream)
                                           : launch_as<T, false>(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
