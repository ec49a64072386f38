// The innermost loop of our matrix products. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_PACKED_TILE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_PACKED_TILE_H_
#undef XRT_CPU_PACKED_TILE_H_
#else
#define XRT_CPU_PACKED_TILE_H_
#endif

#include <array>
#include <utility>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/matmul/packed_task.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

// As many sums as fit the registers beside a row of lanes and one broadcast value.
#if HWY_TARGET == HWY_AVX3
inline constexpr std::size_t tile_rows = 14, tile_vectors = 2;
#elif HWY_ARCH_ARM
inline constexpr std::size_t tile_rows = 8, tile_vectors = 3;
#else
inline constexpr std::size_t tile_rows = 6, tile_vectors = 2;
#endif
static_assert(tile_rows <= most_tile_rows && tile_vectors * hn::MaxLanes(F32()) <= most_tile_lanes);

template <std::size_t... i, class Body>
HWY_INLINE void unrolled(std::index_sequence<i...>, const Body& body) {
  (body(std::integral_constant<std::size_t, i>()), ...);
}
template <std::size_t count, class Body>
HWY_INLINE void unrolled(const Body& body) {
  unrolled(std::make_index_sequence<count>(), body);
}
#define XRT_UNROLLED_BODY HWY_ATTR __attribute__((always_inline))

/// Keeps the compiler from loading all rows' values first: on Arm it then has too few registers for the sums.
HWY_INLINE void keep_order() {
#if HWY_ARCH_ARM
  asm volatile("" ::: "memory");
#endif
}

/// c[rows, vectors * lanes] (+)= a b. Row i of a begins at a + i * row_step; b has one row of lanes for each p, b_step
/// apart. Each sum takes its products one after the other, so its bits do not depend on the tile it falls into. It
/// starts at zero and is added to c at the end: carried on from c, the errors of a long sum would grow with its length.
template <std::size_t rows, std::size_t vectors>
void multiply_tile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::int64_t b_step, std::int64_t k,
                   float* HWY_RESTRICT c, std::int64_t c_step, bool accumulate) {
  const std::size_t lanes = f32_lanes();
  const auto place = [&](std::size_t i, std::size_t v)
                         XRT_UNROLLED_BODY { return c + static_cast<std::int64_t>(i) * c_step + v * lanes; };
  F32Vec sums[rows][vectors];
  unrolled<rows>([&](auto i) XRT_UNROLLED_BODY {
    unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY {
      sums[i][v] = hn::Zero(F32());
      __builtin_prefetch(place(i, v), 1);  // a short sum is done before its place is in the cache
    });
  });
  for (std::int64_t p = 0; p < k; ++p) {
    F32Vec right[vectors];
    unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY { right[v] = load(b + v * lanes); });
    unrolled<rows>([&](auto i) XRT_UNROLLED_BODY {
      const F32Vec left = hn::Set(F32(), a[i * row_step]);
      unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY { sums[i][v] = hn::MulAdd(left, right[v], sums[i][v]); });
      keep_order();
    });
    ++a;
    b += b_step;
  }
  if (accumulate) {
    unrolled<rows>([&](auto i) XRT_UNROLLED_BODY {
      unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY { sums[i][v] = hn::Add(load(place(i, v)), sums[i][v]); });
    });
  }
  unrolled<rows>([&](auto i) XRT_UNROLLED_BODY {
    unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY { store(sums[i][v], place(i, v)); });
  });
}

using MultiplyTile = void (*)(const float*, const float*, std::int64_t, std::int64_t, float*, std::int64_t, bool);

template <std::size_t vectors, std::size_t... rows>
constexpr std::array<MultiplyTile, sizeof...(rows)> tiles_of_width(std::index_sequence<rows...>) {
  return {multiply_tile<rows + 1, vectors>...};
}

template <std::size_t... vectors>
constexpr std::array<std::array<MultiplyTile, tile_rows>, sizeof...(vectors)> all_tiles(
    std::index_sequence<vectors...>) {
  return {tiles_of_width<vectors + 1>(std::make_index_sequence<tile_rows>())...};
}

/// The loop for a tile of so many rows (1 to tile_rows) and vectors (1 to tile_vectors).
HWY_INLINE MultiplyTile tile_for(std::int64_t rows, std::int64_t vectors) {
  static constexpr auto table = all_tiles(std::make_index_sequence<tile_vectors>());
  return table[static_cast<std::size_t>(vectors - 1)][static_cast<std::size_t>(rows - 1)];
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
