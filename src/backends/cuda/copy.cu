#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

template <class Unit, class Index>
__global__ void __launch_bounds__(element_threads) by_units(const CopyLaunch p, const Pointers x) {
  constexpr int count = units_per_thread<Unit>;
  const auto* from = reinterpret_cast<const Unit*>(static_cast<const std::byte*>(x.inputs[0]) + p.from);
  auto* to = reinterpret_cast<Unit*>(static_cast<std::byte*>(x.output) + p.to);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * element_threads * count + threadIdx.x;
  Unit units[count];
  std::int64_t output[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const std::int64_t unit = first + i * element_threads;
    if (unit >= p.shape.count) break;
    const Offsets at = offsets_of<Index>(p.shape, static_cast<Index>(unit));
    units[i] = from[at.first];
    output[i] = at.output;
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if (first + i * element_threads >= p.shape.count) break;
    to[output[i]] = units[i];
  }
  if (first < p.tail) {
    const std::int64_t at = p.shape.count * static_cast<std::int64_t>(sizeof(Unit)) + first;
    reinterpret_cast<std::byte*>(to)[at] = reinterpret_cast<const std::byte*>(from)[at];
  }
}

/// A part of the last two dims, of which the last is dense in the output and the one before it, here called rows, in
/// the input.
template <class Unit>
struct Tile {
  const Unit* input;
  Unit* output;
  std::int64_t rows, columns;  // that are left from its first ones on
  std::int64_t input_step, output_step;

  __device__ Tile(const CopyLaunch& p, const Pointers& x, int side) {
    const int last = p.shape.rank - 1, before = last - 1;
    const auto across = static_cast<unsigned>((p.shape.extent[last] + side - 1) / side);
    const auto down = static_cast<unsigned>((p.shape.extent[before] + side - 1) / side);
    const unsigned line = blockIdx.x / across;
    unsigned block = line / down;
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.x - line * across) * side;
    const std::int64_t row = static_cast<std::int64_t>(line - block * down) * side;
    rows = p.shape.extent[before] - row;
    columns = p.shape.extent[last] - column;
    input_step = p.shape.strides[0][last];
    output_step = p.shape.strides[2][before];
    std::int64_t from = row + column * input_step, to = row * output_step + column;
    for (int dim = before - 1; dim >= 0; --dim) {
      const unsigned rest = block / static_cast<unsigned>(p.shape.extent[dim]);
      const std::int64_t at = block - rest * static_cast<unsigned>(p.shape.extent[dim]);
      from += at * p.shape.strides[0][dim];
      to += at * p.shape.strides[2][dim];
      block = rest;
    }
    input = reinterpret_cast<const Unit*>(static_cast<const std::byte*>(x.inputs[0]) + p.from) + from;
    output = reinterpret_cast<Unit*>(static_cast<std::byte*>(x.output) + p.to) + to;
  }
};

/// A square of elements goes through shared memory, so that both sides move neighbours.
template <class Unit>
inline constexpr int tile_side = sizeof(Unit) >= 4 ? 32 : 64;

template <class Unit>
__global__ void __launch_bounds__(element_threads) by_tiles(const CopyLaunch p, const Pointers x) {
  constexpr int side = tile_side<Unit>;
  constexpr int lines = element_threads / side;                      // that are moved at a time
  constexpr int padding = sizeof(Unit) >= 4 ? 1 : 4 / sizeof(Unit);  // columns then lie in banks of their own
  __shared__ Unit tile[side][side + padding];
  const Tile<Unit> at(p, x, side);
  const int along = static_cast<int>(threadIdx.x) % side;
  const int line = static_cast<int>(threadIdx.x) / side;
#pragma unroll
  for (int i = line; i < side; i += lines) {  // the input's neighbours lie along rows
    if (along < at.rows && i < at.columns) tile[i][along] = at.input[along + i * at.input_step];
  }
  __syncthreads();
#pragma unroll
  for (int i = line; i < side; i += lines) {
    if (i < at.rows && along < at.columns) at.output[i * at.output_step + along] = tile[along][i];
  }
}

/// Units in 16 bytes: the side of the square that a thread turns in its registers.
template <class Unit>
inline constexpr int square = 16 / static_cast<int>(sizeof(Unit));

template <class Unit>
__device__ unsigned turned_word(const uint4 (&lines)[square<Unit>], int line, int word) {
  const auto get = [&](int from, int at) {
    return at == 0 ? lines[from].x : at == 1 ? lines[from].y : at == 2 ? lines[from].z : lines[from].w;
  };
  if constexpr (sizeof(Unit) == 8) return get(word / 2, 2 * line + word % 2);
  if constexpr (sizeof(Unit) == 4) return get(word, line);
  return __byte_perm(get(2 * word, line / 2), get(2 * word + 1, line / 2), line % 2 == 0 ? 0x5410 : 0x7632);
}

/// Where all are whole vectors: 16 x 16 squares a block, 8 x 4 a warp, so that both sides move lines of 64 bytes or
/// more.
template <class Unit>
__global__ void __launch_bounds__(element_threads) by_squares(const CopyLaunch p, const Pointers x) {
  constexpr int side = square<Unit>;
  const Tile<Unit> at(p, x, 16 * side);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = (lane % 8 + warp % 2 * 8) * side, column = (lane / 8 + warp / 2 * 4) * side;
  if (row >= at.rows || column >= at.columns) return;
  uint4 lines[side];
#pragma unroll
  for (int i = 0; i < side; ++i) lines[i] = load_once(at.input + row + (column + i) * at.input_step);
#pragma unroll
  for (int i = 0; i < side; ++i) {
    *reinterpret_cast<uint4*>(at.output + (row + i) * at.output_step + column) = {
        turned_word<Unit>(lines, i, 0), turned_word<Unit>(lines, i, 1), turned_word<Unit>(lines, i, 2),
        turned_word<Unit>(lines, i, 3)};
  }
}

/// Whether a tiled copy can go by squares.
template <class Unit>
bool has_squares(const CopyLaunch& launch, const Pointers& pointers) {
  const ElementwiseShape& s = launch.shape;
  const int last = s.rank - 1, before = last - 1;
  const auto begins = [](const void* data, std::int64_t bytes) {
    return (reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(bytes)) % 16 == 0;
  };
  bool fits = begins(pointers.inputs[0], launch.from) && begins(pointers.output, launch.to) &&
              s.extent[last] % square<Unit> == 0 && s.extent[before] % square<Unit> == 0;
  for (int d = 0; d < s.rank; ++d) {
    fits = fits && (d == before || s.strides[0][d] % square<Unit> == 0) &&
           (d == last || s.strides[2][d] % square<Unit> == 0);
  }
  return fits;
}

template <class Unit>
cudaError_t launch_tiles(const CopyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const ElementwiseShape& s = launch.shape;
  const auto with = [&](void (*kernel)(CopyLaunch, Pointers), std::int64_t side) {
    const std::int64_t rows = s.extent[s.rank - 2], columns = s.extent[s.rank - 1];
    const std::int64_t tiles = ((rows + side - 1) / side) * ((columns + side - 1) / side);
    const auto blocks = static_cast<unsigned>(s.count / rows / columns * tiles);
    return queue(kernel, blocks, element_threads, launch, pointers, stream);
  };
  if constexpr (sizeof(Unit) > 1) {
    if (has_squares<Unit>(launch, pointers)) return with(by_squares<Unit>, 16 * square<Unit>);
  }
  return with(by_tiles<Unit>, tile_side<Unit>);
}

template <class Unit>
cudaError_t launch_units(const CopyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if constexpr (sizeof(Unit) <= 8) {
    if (launch.tiled) return launch_tiles<Unit>(launch, pointers, stream);
  }
  const unsigned blocks = blocks_of_units<Unit>(launch.shape.count);
  const auto kernel = fits_32_bits(launch.shape) ? by_units<Unit, std::uint32_t> : by_units<Unit, std::uint64_t>;
  return queue(kernel, blocks == 0 ? 1 : blocks, element_threads, launch, pointers, stream);
}

}  // namespace

cudaError_t launch(const CopyLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count == 0 && launch.tail == 0) return cudaSuccess;
  return with_unit(launch.unit, [&](auto unit) { return launch_units<decltype(unit)>(launch, pointers, stream); });
}

}  // namespace xpuruntime::cuda
