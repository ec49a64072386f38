#include "backends/cpu/pool/vectors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/rows_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/conv/rows.h"
#include "backends/cpu/pool/combine.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

constexpr int most_sources = 32;
// Vectors of a plane that are summed before their sum goes to a longer one.
constexpr std::int64_t run_vectors = 256;

/// Combines `count` rows into one of f32; `first` says that nothing is in it yet. May write past the width.
template <class Op, class T>
HWY_INLINE void combine_rows(const T* const* from, int count, const T* end, std::int64_t width, bool first, float* to) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  for (std::int64_t x = 0; x < width; x += lanes) {
    F32Vec value = hn::Set(F32(), Op::identity);
    for (int i = 0; i < count; ++i) {
      // Only the rows at the end of the tensor must not be read past theirs.
      const T* at = from[i] + x;
      const bool whole = end - at >= lanes;
      value = Op::combine(value, whole ? load(at) : load_first(at, static_cast<std::size_t>(end - at)));
    }
    store(first ? value : Op::combine(load(to + x), value), to + x);
  }
}

/// The same for three rows into an empty one, none of them at the end of the tensor: the common case.
template <class Op, class T>
HWY_INLINE void combine_three_rows(const T* const* from, std::int64_t width, float* to) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  for (std::int64_t x = 0; x < width; x += lanes) {
    const F32Vec two = Op::combine(load(from[0] + x), load(from[1] + x));
    store(Op::combine(two, load(from[2] + x)), to + x);
  }
}

template <class Op, class T>
HWY_INLINE void combine_window_rows(const PoolShape& s, const T* plane, const T* end, std::int64_t z, std::int64_t y,
                                    float* to) {
  const T* from[most_sources];
  int count = 0;
  bool first = true;
  const std::int64_t readable = s.in[2] + static_cast<std::int64_t>(f32_lanes());
  const auto flush = [&]() HWY_ATTR {
    if (count == 3 && first && end - from[2] >= readable) {
      combine_three_rows<Op>(from, s.in[2], to);
    } else {
      combine_rows<Op>(from, count, end, s.in[2], first, to);
    }
    first = false;
    count = 0;
  };
  for (std::int64_t a = 0; a < s.kernel[0]; ++a) {
    const std::int64_t from_z = z * s.stride[0] + a * s.dilation[0] - s.padding[0];
    if (from_z < 0 || from_z >= s.in[0]) continue;
    for (std::int64_t b = 0; b < s.kernel[1]; ++b) {
      const std::int64_t from_y = y * s.stride[1] + b * s.dilation[1] - s.padding[1];
      if (from_y < 0 || from_y >= s.in[1]) continue;
      if (count == most_sources) flush();
      from[count++] = plane + (from_z * s.in[1] + from_y) * s.in[2];
    }
  }
  if (count > 0 || first) flush();
}

template <class Op, class Load>
HWY_INLINE F32Vec combine_loaded(std::int64_t taps, std::int64_t dilation, const float* at, Load load_tap) {
  if (taps == 3) {
    const F32Vec two = Op::combine(load_tap(at), load_tap(at + dilation));
    return Op::combine(two, load_tap(at + 2 * dilation));
  }
  F32Vec value = load_tap(at);
  for (std::int64_t t = 1; t < taps; ++t) value = Op::combine(value, load_tap(at + t * dilation));
  return value;
}

/// The outputs from x on: combines what the taps of the window meet along the row.
template <class Op>
HWY_INLINE F32Vec combine_taps(const PoolShape& s, const float* row, std::int64_t x) {
  const std::int64_t stride = s.stride[2], dilation = s.dilation[2], taps = s.kernel[2];
  const float* at = row + x * stride;
  if (stride == 1) return combine_loaded<Op>(taps, dilation, at, [](const float* p) HWY_ATTR { return load(p); });
  if (stride == 2) {
    return combine_loaded<Op>(taps, dilation, at, [](const float* p) HWY_ATTR { return load_every_second(p); });
  }
  const hn::RebindToSigned<F32> di;
  const auto steps = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(stride)));
  return combine_loaded<Op>(taps, dilation, at,
                            [&](const float* p) HWY_ATTR { return hn::GatherIndex(F32(), p, steps); });
}

/// An output row's place, stepped on: dividing for each row would cost as much as the row.
struct RowPlace {
  RowPlace(const PoolShape& s, std::int64_t i)
      : height(s.out[1]), depth(s.out[0]), y(i % height), z(i / height % depth), plane(i / height / depth) {}

  void next() {
    if (++y < height) return;
    y = 0;
    if (++z < depth) return;
    z = 0;
    ++plane;
  }

  std::int64_t height, depth, y, z, plane;
};

template <class Op, class In, class Out>
void run_rows(const PoolRows& rows) {
  const PoolShape& s = *rows.shape;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t plane_size = s.in[0] * s.in[1] * s.in[2];
  const In* in = static_cast<const In*>(rows.in);
  const In* end = in + s.planes() * plane_size;
  // What the windows see of the row, from its left padding on.
  const std::int64_t seen = (s.out[2] - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
  const std::int64_t pitch = pool_scratch_floats(s) / pool_rows_at_once, filled = s.padding[2] + s.in[2];
  for (std::int64_t r = 0; r < pool_rows_at_once; ++r) {
    std::fill_n(rows.scratch + r * pitch, s.padding[2], Op::identity);
  }
  RowPlace under(s, rows.begin), along = under;
  float area = 1, inverse = 1;
  for (std::int64_t first = rows.begin; first < rows.end; first += pool_rows_at_once) {
    const std::int64_t count = std::min(pool_rows_at_once, rows.end - first);
    for (std::int64_t r = 0; r < count; ++r, under.next()) {
      float* row = rows.scratch + r * pitch;
      combine_window_rows<Op>(s, in + under.plane * plane_size, end, under.z, under.y, row + s.padding[2]);
      for (std::int64_t x = filled; x < seen; x += lanes) store(hn::Set(F32(), Op::identity), row + x);
    }
    for (std::int64_t r = 0; r < count; ++r, along.next()) {
      Out* out = static_cast<Out*>(rows.out) + (first + r) * s.out[2];
      if (s.average && area != rows.area(along.z, along.y)) {
        area = rows.area(along.z, along.y);
        inverse = 1 / area;
      }
      for (std::int64_t x = 0; x < s.out[2]; x += lanes) {
        F32Vec value = combine_taps<Op>(s, rows.scratch + r * pitch, x);
        if (s.average) {
          const F32Vec counts = hn::Mul(hn::Set(F32(), area), load(rows.x_counts + x));
          value = divided(value, counts, hn::Mul(hn::Set(F32(), inverse), load(rows.x_inverses + x)));
        }
        put_some(value, out + x, s.out[2] - x);
      }
    }
  }
}

/// Windows that cover whole planes and nothing else: each plane is one run of values.
template <class Op, class In, class Out>
void run_whole_planes(const PoolRows& rows) {
  const F32 d;
  const PoolShape& s = *rows.shape;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t size = s.in[0] * s.in[1] * s.in[2], left = size % lanes;
  const In* end = static_cast<const In*>(rows.in) + s.planes() * size;
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(left));
  for (std::int64_t plane = rows.begin; plane < rows.end; ++plane) {
    const In* from = static_cast<const In*>(rows.in) + plane * size;
    F32Vec value = hn::Set(d, Op::identity);
    std::int64_t i = 0;
    while (i + lanes <= size) {
      F32Vec run = hn::Set(d, Op::identity);
      for (const std::int64_t end = i + run_vectors * lanes; i + lanes <= size && i < end; i += lanes) {
        run = Op::combine(run, load(from + i));
      }
      value = Op::combine(value, run);
    }
    if (left != 0) {
      const bool whole = end - from >= i + lanes;
      const F32Vec last = whole ? load(from + i) : load_first(from + i, static_cast<std::size_t>(left));
      value = Op::combine(value, hn::IfThenElse(mask, last, hn::Set(d, Op::identity)));
    }
    value = Op::over_lanes(value);
    if (s.average) value = hn::Div(value, hn::Set(d, static_cast<float>(size)));
    put_some(value, static_cast<Out*>(rows.out) + plane, 1);
  }
}

bool covers_planes(const PoolShape& s) {
  return s.out == Extents{1, 1, 1} && s.kernel == s.in && s.padding == Extents{0, 0, 0} &&
         s.dilation == Extents{1, 1, 1};
}

template <class Op, class In, class Out>
void run_windows(const PoolRows& rows) {
  if (covers_planes(*rows.shape)) return run_whole_planes<Op, In, Out>(rows);
  run_rows<Op, In, Out>(rows);
}

template <class In, class Out>
void run_op(const PoolRows& rows) {
  if (rows.shape->average) return run_windows<Sum, In, Out>(rows);
  run_windows<Maximum, In, Out>(rows);
}

void run_any_rows(const PoolRows& rows, DataType in, DataType out) {
  with_storage(in, [&](auto from) { with_storage(out, [&](auto to) { run_op<decltype(from), decltype(to)>(rows); }); });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(run_any_rows);

void run_pool_rows(const PoolRows& rows, DataType in, DataType out) {
  HWY_DYNAMIC_DISPATCH(run_any_rows)(rows, in, out);
}

std::int64_t pool_scratch_floats(const PoolShape& shape) {
  constexpr std::int64_t lanes = 16;
  // Vectors of outputs end up to a vector less one past the last output, and reads of every second value one further.
  const std::int64_t seen =
      (shape.out[2] + lanes - 1) * shape.stride[2] + (shape.kernel[2] - 1) * shape.dilation[2] + 2 * lanes;
  const std::int64_t written = shape.padding[2] + shape.in[2] + lanes;
  return pool_rows_at_once * ((std::max(seen, written) + lanes - 1) / lanes * lanes);
}

}  // namespace xpuruntime::cpu
#endif
