#include "backends/cpu/pool/vectors.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pool/threes_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/conv/rows.h"
#include "backends/cpu/pool/combine.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// A vector of neighbouring outputs, and what their windows see of a row.
template <class Op, class T>
class Strip {
 public:
  Strip(const PoolShape& s, const T* in, std::int64_t x)
      : in_(in), size_(s.planes() * s.in[1] * s.in[2]), first_(x - s.padding[2]) {
    const hn::RebindToSigned<F32> di;
    for (int t = 0; t < 3; ++t) {
      const auto column = hn::Iota(di, static_cast<std::int32_t>(first_ + t));
      const auto left = hn::Gt(column, hn::Set(di, -1));
      const auto right = hn::Lt(column, hn::Set(di, static_cast<std::int32_t>(s.in[2])));
      inside_[t] = hn::BitCast(F32(), hn::VecFromMask(di, hn::And(left, right)));
    }
    inner_ = first_ >= 0 && first_ + reads() <= s.in[2];
  }

  bool inner() const { return inner_; }

  /// What the three taps meet in the row that starts at `row`.
  template <bool inner>
  HWY_INLINE F32Vec across(std::int64_t row) const {
    const std::int64_t at = row + first_;
    if (inner) return Op::combine(Op::combine(load(in_ + at), load(in_ + at + 1)), load(in_ + at + 2));
    return at < 0 || at + reads() > size_ ? across_copy(at) : across_edge(in_ + at);
  }

 private:
  static std::int64_t reads() { return static_cast<std::int64_t>(f32_lanes()) + 2; }

  HWY_INLINE F32Vec tap(const T* at, int t) const {
    return hn::IfThenElse(hn::MaskFromVec(inside_[t]), load(at + t), hn::Set(F32(), Op::identity));
  }
  HWY_INLINE F32Vec across_edge(const T* at) const {
    return Op::combine(Op::combine(tap(at, 0), tap(at, 1)), tap(at, 2));
  }
  /// At the ends of the tensor, past which nothing may be read.
  HWY_INLINE F32Vec across_copy(std::int64_t at) const {
    T copy[hn::MaxLanes(F32()) + 2] = {};
    const std::int64_t from = std::max<std::int64_t>(at, 0), to = std::min(at + reads(), size_);
    if (from < to) std::copy(in_ + from, in_ + to, copy + (from - at));
    return across_edge(copy);
  }

  const T* in_;
  std::int64_t size_, first_;
  F32Vec inside_[3];
  bool inner_ = false;
};

/// Outputs of one plane: all that lie in rows [begin, end) and in the vector from x on.
struct Column {
  std::int64_t plane = 0, begin = 0, end = 0, x = 0;
};

template <bool inner, class Op, class In, class Out>
HWY_INLINE void run_column(const PoolRows& rows, const Strip<Op, In>& strip, const Column& column) {
  const PoolShape& s = *rows.shape;
  const auto across = [&](std::int64_t y) HWY_ATTR {
    if (y < 0 || y >= s.in[1]) return hn::Set(F32(), Op::identity);
    return strip.template across<inner>((column.plane * s.in[1] + y) * s.in[2]);
  };
  F32Vec counts = hn::Set(F32(), 1.0f), inverses = counts;
  float area = 0;
  std::int64_t y = column.begin - s.padding[1];
  F32Vec first = across(y), second = across(y + 1);
  Out* out = static_cast<Out*>(rows.out) + (column.plane * s.out[1] + column.begin) * s.out[2] + column.x;
  for (std::int64_t i = column.begin; i < column.end; ++i, ++y, out += s.out[2]) {
    const F32Vec third = across(y + 2);
    F32Vec value = Op::combine(Op::combine(first, second), third);
    if (s.average) {
      if (area != rows.area(0, i)) {
        area = rows.area(0, i);
        counts = hn::Mul(hn::Set(F32(), area), load(rows.x_counts + column.x));
        inverses = hn::Div(hn::Set(F32(), 1.0f), counts);
      }
      value = divided(value, counts, inverses);
    }
    put_some(value, out, s.out[2] - column.x);
    first = second;
    second = third;
  }
}

template <class Op, class In, class Out>
void run_threes(const PoolRows& rows) {
  const PoolShape& s = *rows.shape;
  const In* in = static_cast<const In*>(rows.in);
  for (std::int64_t x = 0; x < s.out[2]; x += static_cast<std::int64_t>(f32_lanes())) {
    const Strip<Op, In> strip(s, in, x);
    for (std::int64_t row = rows.begin; row < rows.end;) {
      Column column;
      column.plane = row / s.out[1];
      column.begin = row % s.out[1];
      column.end = std::min(s.out[1], column.begin + rows.end - row);
      column.x = x;
      if (strip.inner()) {
        run_column<true, Op, In, Out>(rows, strip, column);
      } else {
        run_column<false, Op, In, Out>(rows, strip, column);
      }
      row += column.end - column.begin;
    }
  }
}

void run_any_threes(const PoolRows& rows, DataType in, DataType out) {
  with_storage(in, [&](auto from) {
    with_storage(out, [&](auto to) {
      if (rows.shape->average) return run_threes<Sum, decltype(from), decltype(to)>(rows);
      run_threes<Maximum, decltype(from), decltype(to)>(rows);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(run_any_threes);

void run_pool_threes(const PoolRows& rows, DataType in, DataType out) {
  HWY_DYNAMIC_DISPATCH(run_any_threes)(rows, in, out);
}

bool is_threes(const PoolShape& s) {
  constexpr Extents ones = {1, 1, 1};
  return s.kernel == Extents{1, 3, 3} && s.stride == ones && s.dilation == ones && s.in[0] == 1 && s.padding[0] == 0 &&
         s.padding[1] <= 1 && s.padding[2] <= 1;
}

}  // namespace xpuruntime::cpu
#endif
