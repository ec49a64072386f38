#include "backends/cpu/attention/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/panels_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// Rows of c held in registers at a time: with 32 vector registers, or 16.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int most_rows = 8;
#else
constexpr int most_rows = 6;
#endif

inline std::int64_t panel_width() { return static_cast<std::int64_t>(2 * f32_lanes()); }

/// n rows of two vectors of c. A chain of structs instead of an array: every vector is sure to be a register.
template <int n>
struct Sums {
  F32Vec left;
  F32Vec right;
  Sums<n - 1> rest;

  // Written out: a constructor that the compiler makes is not compiled for the target.
  HWY_INLINE Sums() {}
  HWY_INLINE void zero() {
    left = right = hn::Zero(F32());
    rest.zero();
  }
  HWY_INLINE void add_from(const float* c, std::int64_t row) {
    left = hn::Add(load(c), left);
    right = hn::Add(load(c + f32_lanes()), right);
    rest.add_from(c + row, row);
  }
  HWY_INLINE void add(const float* a, std::int64_t row, F32Vec b_left, F32Vec b_right) {
    const F32Vec factor = hn::Set(F32(), *a);
    left = hn::MulAdd(factor, b_left, left);
    right = hn::MulAdd(factor, b_right, right);
    rest.add(a + row, row, b_left, b_right);
  }
  HWY_INLINE void store_to(float* c, std::int64_t row) const {
    store(left, c);
    store(right, c + f32_lanes());
    rest.store_to(c + row, row);
  }
};

template <>
struct Sums<0> {
  HWY_INLINE void zero() {}
  HWY_INLINE void add_from(const float*, std::int64_t) {}
  HWY_INLINE void add(const float*, std::int64_t, F32Vec, F32Vec) {}
  HWY_INLINE void store_to(float*, std::int64_t) const {}
};

/// Rows `first` to `first + n - 1` of the panel at column j.
template <int n>
HWY_NOINLINE void multiply_rows(const PanelProduct& p, std::int64_t j, std::int64_t first) {
  const std::int64_t width = panel_width();
  const float* const a = p.a + first * p.a_row;
  const float* b = p.b + j * p.b_rows;
  float* const c = p.c + first * p.c_row + j;
  Sums<n> sums;
  sums.zero();
  for (std::int64_t i = 0; i < p.depth; ++i, b += width) sums.add(a + i, p.a_row, load(b), load(b + width / 2));
  if (p.accumulate) sums.add_from(c, p.c_row);
  sums.store_to(c, p.c_row);
}

template <int n>
HWY_INLINE void multiply_last(const PanelProduct& p, std::int64_t j, std::int64_t first) {
  if constexpr (n > 0) p.rows - first == n ? multiply_rows<n>(p, j, first) : multiply_last<n - 1>(p, j, first);
}

// A panel stays in the first cache while all rows go over it.
void multiply(const PanelProduct& p) {
  for (std::int64_t j = 0; j < p.columns; j += panel_width()) {
    std::int64_t first = 0;
    for (; first + most_rows <= p.rows; first += most_rows) multiply_rows<most_rows>(p, j, first);
    multiply_last<most_rows - 1>(p, j, first);
  }
}

template <class T>
HWY_INLINE void pack_rows_typed(const T* b, std::int64_t row, std::int64_t k, std::int64_t n, float* packed) {
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  for (std::int64_t panel = 0; panel < panel_columns(n); panel += 2 * lanes) {
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = panel; j < panel + 2 * lanes; j += lanes, packed += lanes) {
        const T* from = b + i * row + j;
        if (j + lanes <= n) {
          store(load(from), packed);
        } else {
          store(j < n ? load_first(from, static_cast<std::size_t>(n - j)) : hn::Zero(F32()), packed);
        }
      }
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
using F32x4 = hn::FixedTag<float, 4>;

HWY_INLINE hn::Vec<F32x4> load4(const float* from) { return hn::LoadU(F32x4(), from); }
HWY_INLINE hn::Vec<F32x4> load4(const Half* from) {
  const hn::Rebind<hwy::float16_t, F32x4> d16;
  return hn::PromoteTo(F32x4(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE hn::Vec<F32x4> load4(const Bfloat* from) {
  const hn::Rebind<std::uint16_t, F32x4> d16;
  const hn::Repartition<std::uint32_t, F32x4> d32;
  const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from)));
  return hn::BitCast(F32x4(), hn::ShiftLeft<16>(wide));
}

/// Four elements of each of four columns become four rows of four.
template <class T>
HWY_INLINE void transpose_4x4(const T* const* columns, std::int64_t at, float* to, std::int64_t to_row) {
  const F32x4 d;
  const hn::Repartition<double, F32x4> d64;
  const auto a = load4(columns[0] + at), b = load4(columns[1] + at);
  const auto c = load4(columns[2] + at), e = load4(columns[3] + at);
  const auto ab_low = hn::InterleaveLower(d, a, b), ab_high = hn::InterleaveUpper(d, a, b);
  const auto ce_low = hn::InterleaveLower(d, c, e), ce_high = hn::InterleaveUpper(d, c, e);
  const auto join = [&](auto first, auto second, float* row_low, float* row_high) HWY_ATTR {
    const auto x = hn::BitCast(d64, first), y = hn::BitCast(d64, second);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, x, y)), d, row_low);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, x, y)), d, row_high);
  };
  join(ab_low, ce_low, to, to + to_row);
  join(ab_high, ce_high, to + 2 * to_row, to + 3 * to_row);
}

#endif

/// Columns j to j + 3 of b into their place in a panel.
template <class T>
HWY_INLINE void pack_four_columns(const T* b, std::int64_t column, std::int64_t k, std::int64_t count, float* to) {
  const std::int64_t width = panel_width();
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if (count == 4) {
    const T* const columns[4] = {b, b + column, b + 2 * column, b + 3 * column};
    for (; i + 4 <= k; i += 4) transpose_4x4(columns, i, to + i * width, width);
  }
#endif
  for (; i < k; ++i) {
    for (std::int64_t j = 0; j < std::min<std::int64_t>(width, 4); ++j) {
      T element[hn::MaxLanes(F32())] = {};
      if (j < count) element[0] = b[j * column + i];
      to[i * width + j] = hn::GetLane(load(element));
    }
  }
}

template <class T>
HWY_INLINE void pack_columns_typed(const T* b, std::int64_t column, std::int64_t k, std::int64_t n, float* packed) {
  const std::int64_t width = panel_width(), step = std::min<std::int64_t>(width, 4);
  for (std::int64_t j = 0; j < panel_columns(n); j += step) {
    const std::int64_t count = std::clamp<std::int64_t>(n - j, 0, step);
    const T* from = count > 0 ? b + j * column : b;
    pack_four_columns(from, column, k, count, packed + j / width * width * k + j % width);
  }
}

void pack_rows(const void* b, DataType dtype, std::int64_t row, std::int64_t k, std::int64_t n, float* packed) {
  with_storage(dtype,
               [&](auto type) HWY_ATTR { pack_rows_typed(static_cast<const decltype(type)*>(b), row, k, n, packed); });
}

void pack_columns(const void* b, DataType dtype, std::int64_t column, std::int64_t k, std::int64_t n, float* packed) {
  with_storage(dtype, [&](auto type) HWY_ATTR {
    pack_columns_typed(static_cast<const decltype(type)*>(b), column, k, n, packed);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
HWY_EXPORT(multiply);
HWY_EXPORT(pack_rows);
HWY_EXPORT(pack_columns);

void pack_panel_rows(const void* b, DataType dtype, std::int64_t row, std::int64_t k, std::int64_t n, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_rows)(b, dtype, row, k, n, packed);
}

void pack_panel_columns(const void* b, DataType dtype, std::int64_t column, std::int64_t k, std::int64_t n,
                        float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_columns)(b, dtype, column, k, n, packed);
}

void multiply_panels(const PanelProduct& product) { HWY_DYNAMIC_DISPATCH(multiply)(product); }

}  // namespace xpuruntime::cpu
#endif
