#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/fold_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/reduce/accumulate.h"
#include "backends/cpu/reduce/fold.h"
#include "backends/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// All rows of one unit in the same lanes; the lanes are folded once, at the end.
template <class Fold, class T>
float fold_unit(const FoldJob& job, const T* x, std::int64_t unit) {
  const std::int64_t piece = unit % job.pieces;
  const std::int64_t group = unit / job.pieces % job.groups;
  const std::int64_t start = piece * job.piece;
  const auto n = static_cast<std::size_t>(std::min(job.piece, job.layout.inner.count - start));
  const std::int64_t first = group * job.rows_per_group;
  const std::int64_t last = std::min(first + job.rows_per_group, job.layout.reduced_count());
  x += offsets_at(job.layout.kept, unit / job.pieces / job.groups).in + start;
  const auto same = [](F32Vec v) HWY_ATTR { return v; };
  F32Vec total = fold_lanes<Fold>(x + offsets_at(job.layout.reduced, first).in, n, same);
  for (std::int64_t r = first + 1; r < last; ++r) {
    total = Fold::fold(total, fold_lanes<Fold>(x + offsets_at(job.layout.reduced, r).in, n, same));
  }
  return Fold::lanes(total);
}

template <class Fold>
void fold_units(const FoldJob& job, const void* x, std::int64_t begin, std::int64_t end, double* results) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    const auto* data = static_cast<const decltype(storage)*>(x);
    for (std::int64_t u = begin; u < end; ++u) results[u - begin] = fold_unit<Fold>(job, data, u);
  });
}

void fold_rows_impl(const FoldJob& job, const void* x, std::int64_t begin, std::int64_t end, double* results) {
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

void fold_rows(const FoldJob& job, const void* x, std::int64_t begin, std::int64_t end, double* results) {
  HWY_DYNAMIC_DISPATCH(fold_rows_impl)(job, x, begin, end, results);
}

}  // namespace xpuruntime::cpu
#endif
