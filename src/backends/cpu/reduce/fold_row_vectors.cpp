#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/fold_row_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/reduce/accumulate.h"
#include "backends/cpu/reduce/fold.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// Rows up to this length are taken a lane each: folding the lanes of a vector would cost more than the row.
constexpr std::int64_t short_row = 16;

struct Identity {
  HWY_INLINE F32Vec operator()(F32Vec v) const { return v; }
};

/// A row in the lanes of a vector, whatever the step from element to element.
template <class Fold, class T>
HWY_INLINE F32Vec row_lanes(const T* x, std::int64_t step, std::int64_t n) {
  if (step == 1) return fold_lanes<Fold>(x, static_cast<std::size_t>(n), Identity());
  constexpr std::int64_t most = 512;
  HWY_ALIGN T line[most];
  F32Vec total = Fold::empty();
  for (std::int64_t i = 0; i < n; i += most) {
    const std::int64_t some = std::min(most, n - i);
    gather(x + i * step, step, some, line);
    total = Fold::fold(total, fold_lanes<Fold>(line, static_cast<std::size_t>(some), Identity()));
  }
  return total;
}

/// All rows of one unit in the same lanes; the lanes are folded once, at the end.
template <class Fold, class T>
float fold_unit(const FoldJob& job, const T* x, std::int64_t unit) {
  const std::int64_t piece = unit % job.pieces;
  const std::int64_t group = unit / job.pieces % job.groups;
  const std::int64_t start = piece * job.piece;
  const std::int64_t step = job.layout.inner.in, n = std::min(job.piece, job.layout.inner.count - start);
  const std::int64_t first = group * job.rows_per_group;
  const std::int64_t last = std::min(first + job.rows_per_group, job.layout.reduced_count());
  x += offsets_at(job.layout.kept, unit / job.pieces / job.groups).in + start * step;
  F32Vec total = row_lanes<Fold>(x + offsets_at(job.layout.reduced, first).in, step, n);
  for (std::int64_t r = first + 1; r < last; ++r) {
    total = Fold::fold(total, row_lanes<Fold>(x + offsets_at(job.layout.reduced, r).in, step, n));
  }
  return Fold::lanes(total);
}

/// Rows of n elements without gaps, a row in each lane. Lanes past the last row repeat it.
template <class Fold>
void fold_short_rows(const float* x, std::int64_t n, std::int64_t rows, float* results) {
  const hn::RebindToSigned<F32> d;
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  const auto step = hn::Set(d, static_cast<std::int32_t>(n));
  for (std::int64_t r = 0; r < rows; r += lanes) {
    const std::int64_t left = std::min(lanes, rows - r);
    const auto lane = hn::Min(hn::Iota(d, 0), hn::Set(d, static_cast<std::int32_t>(left - 1)));
    const auto index = hn::Mul(lane, step);
    F32Vec total = hn::GatherIndex(F32(), x + r * n, index);
    for (std::int64_t j = 1; j < n; ++j) total = Fold::fold(total, hn::GatherIndex(F32(), x + r * n + j, index));
    if (left == lanes) {
      store(total, results + r);
    } else {
      store_first(total, results + r, static_cast<std::size_t>(left));
    }
  }
}

/// The same for narrow types, which are widened some rows at a time.
template <class Fold, class T>
void fold_short_rows(const T* x, std::int64_t n, std::int64_t rows, float* results) {
  constexpr std::int64_t most = 64;
  HWY_ALIGN float wide[most * short_row];
  for (std::int64_t r = 0; r < rows; r += most) {
    const std::int64_t some = std::min(most, rows - r);
    for_vectors(static_cast<std::size_t>(some * n),
                [&](std::size_t i, auto get, auto put) HWY_ATTR { put(get(x + r * n + i), wide + i); });
    fold_short_rows<Fold>(wide, n, some, results + r);
  }
}

template <class Fold, class T>
void fold_range(const FoldJob& job, const T* x, std::int64_t begin, std::int64_t end, float* results) {
  const ReduceLayout& layout = job.layout;
  const std::int64_t step = layout.inner.in, n = layout.inner.count;
  const bool whole_rows = layout.reduced.empty() && job.pieces == 1;
  if (whole_rows && step == 1 && n <= short_row && layout.kept.size() == 1 && layout.kept[0].in == n) {
    return fold_short_rows<Fold>(x + begin * n, n, end - begin, results);
  }
  if (whole_rows) {
    // Along the last kept dim, whose rows are one step apart.
    const Axis last = layout.kept.empty() ? Axis{} : layout.kept.back();
    for (std::int64_t u = begin; u < end;) {
      const std::int64_t run = std::min(end - u, last.count - u % last.count);
      const T* row = x + offsets_at(layout.kept, u).in;
      for (std::int64_t i = 0; i < run; ++i, ++u, row += last.in) {
        results[u - begin] = Fold::lanes(row_lanes<Fold>(row, step, n));
      }
    }
    return;
  }
  for (std::int64_t u = begin; u < end; ++u) results[u - begin] = fold_unit<Fold>(job, x, u);
}

template <class Fold>
void fold_units(const FoldJob& job, const void* x, std::int64_t begin, std::int64_t end, float* results) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    fold_range<Fold>(job, static_cast<const decltype(storage)*>(x), begin, end, results);
  });
}

void fold_rows_impl(const FoldJob& job, const void* x, std::int64_t begin, std::int64_t end, float* results) {
  switch (job.kind) {
    case FoldKind::sum:
      return fold_units<SumFold>(job, x, begin, end, results);
    case FoldKind::max:
      return fold_units<MaxFold>(job, x, begin, end, results);
    case FoldKind::min:
      return fold_units<MinFold>(job, x, begin, end, results);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(fold_rows_impl);

void fold_rows(const FoldJob& job, const void* x, std::int64_t begin, std::int64_t end, float* results) {
  HWY_DYNAMIC_DISPATCH(fold_rows_impl)(job, x, begin, end, results);
}

}  // namespace xpuruntime::cpu
#endif
