#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/fold_column_vectors.cpp"
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

/// The fold of one vector of each row, as a tree: it shortens the chain of the accumulator.
template <class Fold, int rows, class T, class Load>
HWY_INLINE F32Vec fold_tree(const T* const* row, std::size_t at, const Load& get) {
  if constexpr (rows == 1) {
    return get(row[0] + at);
  } else {
    return Fold::fold(fold_tree<Fold, rows / 2>(row, at, get), fold_tree<Fold, rows / 2>(row + rows / 2, at, get));
  }
}

template <class Fold, int rows, class T>
void fold_into(const T* const* row, std::size_t width, float* result) {
  for_vectors(width, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    put(Fold::fold(get(result + i), fold_tree<Fold, rows>(row, i, get)), result + i);
  });
}

/// Rows [first, last), of which `row_at(r)` is the start: eight at a time, so that the result is seldom read again.
template <class Fold, class T, class RowAt>
void fold_some(const RowAt& row_at, std::int64_t first, std::int64_t last, std::size_t width, float* result) {
  const T* row[8];
  std::int64_t r = first;
  for (; r + 8 <= last; r += 8) {
    for (int i = 0; i < 8; ++i) row[i] = row_at(r + i);
    fold_into<Fold, 8>(row, width, result);
  }
  for (; r + 2 <= last; r += 2) {
    for (int i = 0; i < 2; ++i) row[i] = row_at(r + i);
    fold_into<Fold, 2>(row, width, result);
  }
  if (r < last) {
    row[0] = row_at(r);
    fold_into<Fold, 1>(row, width, result);
  }
}

void fill(float* result, std::size_t n, F32Vec value) {
  for_vectors(n, [&](std::size_t i, auto, auto put) HWY_ATTR { put(value, result + i); });
}

/// Rows that follow each other without a gap are taken several at once, as one wide row: narrow ones would leave most
/// lanes empty. The columns of the wide row are folded together in the end.
template <class Fold, class T>
void fold_narrow(const T* x, std::int64_t first, std::int64_t last, std::int64_t width, float* result) {
  HWY_ALIGN float wide[most_columns];
  const std::int64_t fit = std::min<std::int64_t>(256 / width, last - first);
  const std::int64_t rows = (last - first) / fit;
  const auto columns = static_cast<std::size_t>(width);
  fill(wide, static_cast<std::size_t>(fit * width), Fold::empty());
  const auto wide_at = [&](std::int64_t r) HWY_ATTR { return x + (first + r * fit) * width; };
  fold_some<Fold, T>(wide_at, 0, rows, static_cast<std::size_t>(fit * width), wide);
  const auto row_at = [&](std::int64_t r) HWY_ATTR { return x + r * width; };
  fold_some<Fold, T>(row_at, first + rows * fit, last, columns, wide);
  for_vectors(columns, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    F32Vec total = get(wide + i);
    for (std::int64_t k = 1; k < fit; ++k) total = Fold::fold(total, get(wide + k * width + i));
    put(total, result + i);
  });
}

template <class Fold, class T>
void fold_group(const FoldJob& job, const T* x, std::int64_t group, std::int64_t width, float* result) {
  const std::int64_t first = group * job.rows_per_group;
  const std::int64_t last = std::min(first + job.rows_per_group, job.layout.reduced_count());
  const std::vector<Axis>& reduced = job.layout.reduced;
  if (reduced.size() == 1 && reduced[0].in == width && width <= 64) {
    return fold_narrow<Fold>(x, first, last, width, result);
  }
  fill(result, static_cast<std::size_t>(width), Fold::empty());
  const auto row_at = [&](std::int64_t r) HWY_ATTR { return x + offsets_at(reduced, r).in; };
  fold_some<Fold, T>(row_at, first, last, static_cast<std::size_t>(width), result);
}

template <class Fold>
void fold_storage(const FoldJob& job, const void* x, std::int64_t group, std::int64_t width, float* result) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    fold_group<Fold>(job, static_cast<const decltype(storage)*>(x), group, width, result);
  });
}

void fold_columns_impl(const FoldJob& job, const void* x, std::int64_t group, std::int64_t width, float* result) {
  switch (job.kind) {
    case FoldKind::sum:
      return fold_storage<SumFold>(job, x, group, width, result);
    case FoldKind::max:
      return fold_storage<MaxFold>(job, x, group, width, result);
    case FoldKind::min:
      return fold_storage<MinFold>(job, x, group, width, result);
  }
}

void store_results_impl(const float* results, std::int64_t n, float factor, float divisor, DataType dtype, void* out) {
  with_storage(dtype, [&](auto storage) HWY_ATTR {
    auto* to = static_cast<decltype(storage)*>(out);
    const F32Vec f = hn::Set(F32(), factor), d = hn::Set(F32(), divisor);
    for_vectors(static_cast<std::size_t>(n), [&](std::size_t i, auto get, auto put)
                                                 HWY_ATTR { put(hn::Div(hn::Mul(get(results + i), f), d), to + i); });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(fold_columns_impl);
HWY_EXPORT(store_results_impl);

void fold_columns(const FoldJob& job, const void* x, std::int64_t group, std::int64_t width, float* result) {
  HWY_DYNAMIC_DISPATCH(fold_columns_impl)(job, x, group, width, result);
}

void store_results(const float* results, std::int64_t n, float factor, float divisor, DataType dtype, void* out) {
  HWY_DYNAMIC_DISPATCH(store_results_impl)(results, n, factor, divisor, dtype, out);
}

}  // namespace xpuruntime::cpu
#endif
