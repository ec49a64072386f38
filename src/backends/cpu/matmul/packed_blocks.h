// Blocks of matrices into buffers of f32 and sums out to their place. Has Highway's toggling guard: include it after
// simd.h and math.h.
#if defined(XRT_CPU_PACKED_BLOCKS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_PACKED_BLOCKS_H_
#undef XRT_CPU_PACKED_BLOCKS_H_
#else
#define XRT_CPU_PACKED_BLOCKS_H_
#endif

#include "backends/cpu/base/math.h"
#include "backends/cpu/base/simd.h"
#include "backends/cpu/matmul/packed_task.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE float widen_one(const T* from) {
  return hn::GetLane(load_first(from, 1));
}
HWY_INLINE float widen_one(const float* from) { return *from; }

/// A block on its way into a buffer: to[i * step + j] = from[i * i_stride + j * j_stride].
template <class T>
struct Gather {
  const T* from;
  std::int64_t i_stride, j_stride, i_count, j_count;
  float* to;
  std::int64_t step;
};

template <class T>
HWY_INLINE void gather_rows(const Gather<T>& g) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t whole = g.j_count - g.j_count % lanes;
  for (std::int64_t i = 0; i < g.i_count; ++i) {
    const T* from = g.from + i * g.i_stride;
    float* to = g.to + i * g.step;
    for (std::int64_t j = 0; j < whole; j += lanes) store(load(from + j), to + j);
    if (whole < g.j_count) {
      const std::size_t left = static_cast<std::size_t>(g.j_count - whole);
      store_first(load_first(from + whole, left), to + whole, left);
    }
  }
}

template <class T>
HWY_INLINE void gather_one_by_one(const Gather<T>& g, std::int64_t i_begin, std::int64_t j_begin) {
  for (std::int64_t i = i_begin; i < g.i_count; ++i) {
    for (std::int64_t j = j_begin; j < g.j_count; ++j) {
      g.to[i * g.step + j] = widen_one(g.from + i * g.i_stride + j * g.j_stride);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
HWY_INLINE void gather_columns(const Gather<T>& g) {
  gather_one_by_one(g, 0, 0);
}
#else
using Four = hn::FixedTag<float, 4>;
using FourVec = hn::Vec<Four>;

HWY_INLINE FourVec load_four(const float* from) { return hn::LoadU(Four(), from); }
HWY_INLINE FourVec load_four(const Half* from) {
  const hn::Rebind<hwy::float16_t, Four> d16;
  return hn::PromoteTo(Four(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}
HWY_INLINE FourVec load_four(const Bfloat* from) {
  const hn::Rebind<std::uint16_t, Four> d16;
  const hn::Repartition<std::uint32_t, Four> d32;
  const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from)));
  return hn::BitCast(Four(), hn::ShiftLeft<16>(wide));
}

// Squares of four, as many side by side as vectors of up to eight lanes hold: there interleaving is cheapest.
using Squares = hn::CappedTag<float, 8>;
using SquaresVec = hn::Vec<Squares>;
inline constexpr std::int64_t squares_lanes = hn::MaxLanes(Squares());

/// Four elements at `from`, and the next square's at from + 4 * stride.
template <class T>
HWY_INLINE SquaresVec load_squares(const T* from, std::int64_t stride) {
  if constexpr (squares_lanes == 8) {
    return hn::Combine(Squares(), load_four(from + 4 * stride), load_four(from));
  } else {
    return load_four(from);
  }
}

HWY_INLINE void transpose_squares(SquaresVec& a, SquaresVec& b, SquaresVec& c, SquaresVec& d) {
  const SquaresVec ac_low = hn::InterleaveLower(Squares(), a, c), ac_high = hn::InterleaveUpper(Squares(), a, c);
  const SquaresVec bd_low = hn::InterleaveLower(Squares(), b, d), bd_high = hn::InterleaveUpper(Squares(), b, d);
  a = hn::InterleaveLower(Squares(), ac_low, bd_low);
  b = hn::InterleaveUpper(Squares(), ac_low, bd_low);
  c = hn::InterleaveLower(Squares(), ac_high, bd_high);
  d = hn::InterleaveUpper(Squares(), ac_high, bd_high);
}

template <class T>
HWY_INLINE void gather_squares(const Gather<T>& g, std::int64_t i, std::int64_t j) {
  const T* from = g.from + i + j * g.j_stride;
  SquaresVec a = load_squares(from, g.j_stride), b = load_squares(from + g.j_stride, g.j_stride);
  SquaresVec c = load_squares(from + 2 * g.j_stride, g.j_stride), d = load_squares(from + 3 * g.j_stride, g.j_stride);
  transpose_squares(a, b, c, d);
  float* to = g.to + i * g.step + j;
  hn::StoreU(a, Squares(), to);
  hn::StoreU(b, Squares(), to + g.step);
  hn::StoreU(c, Squares(), to + 2 * g.step);
  hn::StoreU(d, Squares(), to + 3 * g.step);
}

/// For i_stride 1. Goes down i by cache lines, so that each is read once however the rows fall on each other.
template <class T>
HWY_INLINE void gather_columns(const Gather<T>& g) {
  constexpr std::int64_t line = 64 / sizeof(T);
  const std::int64_t i_whole = g.i_count & ~3, j_whole = g.j_count / squares_lanes * squares_lanes;
  for (std::int64_t begin = 0; begin < i_whole; begin += line) {
    const std::int64_t end = HWY_MIN(begin + line, i_whole);
    for (std::int64_t j = 0; j < j_whole; j += squares_lanes) {
      for (std::int64_t i = begin; i < end; i += 4) gather_squares(g, i, j);
    }
  }
  if (j_whole < g.j_count) gather_one_by_one(g, 0, j_whole);
  Gather<T> rest = g;
  rest.j_count = j_whole;
  if (i_whole < g.i_count) gather_one_by_one(rest, i_whole, 0);
}
#endif

template <class T>
HWY_INLINE void gather(const Gather<T>& g) {
  if (g.j_stride == 1) return gather_rows(g);
  if (g.i_stride == 1) return gather_columns(g);
  gather_one_by_one(g, 0, 0);
}

/// A tile of sums on its way out.
template <class Out>
struct Finish {
  float* sums;
  std::int64_t sums_step, row_count, lane_count;
  Out* out;
  std::int64_t out_row, out_lane;
  const float* row_bias;
  const float* lane_bias;
  Activation activation;
};

template <class Out>
HWY_INLINE F32Vec finished(F32Vec sum, F32Vec bias, const Finish<Out>& f) {
  return apply_activation(hn::Add(sum, bias), f.activation);
}

template <class Out>
HWY_INLINE void finish_into_rows(const Finish<Out>& f) {
  for (std::int64_t i = 0; i < f.row_count; ++i) {
    const float* from = f.sums + i * f.sums_step;
    Out* to = f.out + i * f.out_row;
    const F32Vec row_bias = hn::Set(F32(), f.row_bias == nullptr ? 0.0f : f.row_bias[i]);
    for_vectors(static_cast<std::size_t>(f.lane_count), [&](std::size_t j, auto get, auto put) HWY_ATTR {
      put(finished(get(from + j), f.lane_bias == nullptr ? row_bias : get(f.lane_bias + j), f), to + j);
    });
  }
}

/// For outputs whose lanes do not lie side by side: finished in a buffer first.
template <class Out>
HWY_INLINE void finish_across(const Finish<Out>& f) {
  HWY_ALIGN float tile[most_tile_rows * most_tile_lanes];
  const Finish<float> inner = {f.sums,          f.sums_step, f.row_count, f.lane_count, tile,
                               most_tile_lanes, 1,           f.row_bias,  f.lane_bias,  f.activation};
  finish_into_rows(inner);
  HWY_ALIGN float across[most_tile_lanes * 16];
  gather(Gather<float>{tile, 1, most_tile_lanes, f.lane_count, f.row_count, across, 16});
  for (std::int64_t j = 0; j < f.lane_count; ++j) {
    Out* to = f.out + j * f.out_lane;
    for_vectors(static_cast<std::size_t>(f.row_count), [&](std::size_t i, auto get, auto put) HWY_ATTR {
      put(get(across + j * 16 + static_cast<std::int64_t>(i)), to + i);
    });
  }
}

/// For outputs with gaps either way.
template <class Out>
HWY_INLINE void finish_one_by_one(const Finish<Out>& f) {
  HWY_ALIGN Out tile[most_tile_rows * most_tile_lanes];
  Finish<Out> inner = f;
  inner.out = tile;
  inner.out_row = most_tile_lanes;
  finish_into_rows(inner);
  for (std::int64_t i = 0; i < f.row_count; ++i) {
    for (std::int64_t j = 0; j < f.lane_count; ++j) {
      f.out[i * f.out_row + j * f.out_lane] = tile[i * most_tile_lanes + j];
    }
  }
}

/// While it lives, results too small for a normal float are zeros. The tails of gelu and silu are such, and x86 takes a
/// hundred times as long for them.
class FlushTiny {
 public:
#if HWY_ARCH_X86
  explicit FlushTiny(Activation activation)
      : active_(activation == Activation::gelu || activation == Activation::silu) {
    constexpr unsigned flush_to_zero = 0x8000;
    if (!active_) return;
    old_ = _mm_getcsr();
    _mm_setcsr(old_ | flush_to_zero);
  }
  ~FlushTiny() {
    if (active_) _mm_setcsr(old_);
  }

 private:
  bool active_;
  unsigned old_ = 0;
#else
  explicit FlushTiny(Activation) {}
#endif
};

template <class Out>
HWY_INLINE void finish(const Finish<Out>& f) {
  const FlushTiny flush(f.activation);
  if (f.out_lane == 1 || f.lane_count == 1) return finish_into_rows(f);
  f.out_row == 1 || f.row_count == 1 ? finish_across(f) : finish_one_by_one(f);
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
