#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/normalize_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/normalize.h"
#include "backends/cpu/reduce/accumulate.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// Elements of a row, or rows of a column, that are summed in f32 before the sum goes to a longer one.
constexpr std::int64_t row_chunk = 16384;
constexpr std::int64_t column_chunk = 256;

struct CountNorm {
  using Fold = SumFold;
  static HWY_INLINE F32Vec term(F32Vec x) { return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(F32())), hn::Set(F32(), 1)); }
  static double whole(double total) { return total; }
  static HWY_INLINE F32Vec whole(F32Vec total) { return total; }
};

struct OneNorm {
  using Fold = SumFold;
  static HWY_INLINE F32Vec term(F32Vec x) { return hn::Abs(x); }
  static double whole(double total) { return total; }
  static HWY_INLINE F32Vec whole(F32Vec total) { return total; }
};

struct TwoNorm {
  using Fold = SumFold;
  static HWY_INLINE F32Vec term(F32Vec x) { return hn::Mul(x, x); }
  static double whole(double total) { return std::sqrt(total); }
  static HWY_INLINE F32Vec whole(F32Vec total) { return hn::Sqrt(total); }
};

struct MostNorm {
  using Fold = MaxFold;
  static HWY_INLINE F32Vec term(F32Vec x) { return hn::Abs(x); }
  static double whole(double total) { return std::max(total, 0.0); }
  static HWY_INLINE F32Vec whole(F32Vec total) { return total; }
};

// x / d is computed as (x before) after: one division a line. `before` is a power of two that keeps the reciprocal of
// a very small or very large d from losing digits.
constexpr float small_divisor = 0x1p-100f, large_divisor = 0x1p100f;
constexpr float enlarge = 0x1p64f, reduce = 0x1p-64f;

template <class Norm, class T>
double norm_of_row(const T* x, std::int64_t n) {
  double total = 0;
  for (std::int64_t i = 0; i < n; i += row_chunk) {
    const auto count = static_cast<std::size_t>(std::min(row_chunk, n - i));
    const double part = static_cast<double>(
        fold_row<typename Norm::Fold>(x + i, count, [](F32Vec v) HWY_ATTR { return Norm::term(v); }));
    if constexpr (std::is_same_v<typename Norm::Fold, SumFold>) {
      total += part;
    } else if (!(part <= total)) {
      if (!std::isnan(total)) total = part;
    }
  }
  return Norm::whole(total);
}

template <class Norm, class T>
void row(const NormalizeJob& job, const T* x, T* out) {
  const double norm = norm_of_row<Norm>(x, job.lines.length);
  const double divisor = norm < job.eps ? job.eps : norm;  // NaN stays
  const double power = divisor < static_cast<double>(small_divisor)   ? static_cast<double>(enlarge)
                       : divisor > static_cast<double>(large_divisor) ? static_cast<double>(reduce)
                                                                      : 1;
  const F32Vec before = hn::Set(F32(), static_cast<float>(power));
  const F32Vec after = hn::Set(F32(), static_cast<float>(1 / (divisor * power)));
  for_vectors(static_cast<std::size_t>(job.lines.length), [&](std::size_t i, auto get, auto put) HWY_ATTR {
    put(hn::Mul(hn::Mul(get(x + i), before), after), out + i);
  });
}

/// A vector of neighbouring columns, a line in each lane: those of load and store that exist.
template <class Norm, class T, class Load, class Store>
HWY_INLINE void column(const NormalizeJob& job, const T* x, T* out, const Load& get, const Store& put) {
  using Fold = typename Norm::Fold;
  const std::int64_t n = job.lines.length, step = job.lines.inner;
  F32Vec total = Fold::empty();
  for (std::int64_t i = 0; i < n; i += column_chunk) {
    F32Vec part = Fold::empty();
    const std::int64_t end = std::min(n, i + column_chunk);
    for (std::int64_t j = i; j < end; ++j) part = Fold::fold(part, Norm::term(get(x + j * step)));
    total = Fold::fold(total, part);
  }
  const F32Vec norm = Norm::whole(total), eps = hn::Set(F32(), static_cast<float>(job.eps));
  const F32Vec divisor = hn::IfThenElse(hn::Lt(norm, eps), eps, norm);
  const F32Vec one = hn::Set(F32(), 1);
  F32Vec before = hn::IfThenElse(hn::Lt(divisor, hn::Set(F32(), small_divisor)), hn::Set(F32(), enlarge), one);
  before = hn::IfThenElse(hn::Gt(divisor, hn::Set(F32(), large_divisor)), hn::Set(F32(), reduce), before);
  const F32Vec after = hn::Div(one, hn::Mul(divisor, before));
  for (std::int64_t j = 0; j < n; ++j) put(hn::Mul(hn::Mul(get(x + j * step), before), after), out + j * step);
}

template <class Norm, class T>
void lines_of(const NormalizeJob& job, const T* x, T* out, std::int64_t begin, std::int64_t end) {
  const std::int64_t inner = job.lines.inner, plane = inner * job.lines.length;
  while (begin < end) {
    const std::int64_t outer = begin / inner, first = begin % inner;
    const std::int64_t last = std::min(inner, first + end - begin);
    const std::int64_t offset = outer * plane + first;
    begin += last - first;
    if (inner == 1) {
      row<Norm>(job, x + offset, out + offset);
      continue;
    }
    for_vectors(static_cast<std::size_t>(last - first), [&](std::size_t i, auto get, auto put) HWY_ATTR {
      column<Norm>(job, x + offset + i, out + offset + i, get, put);
    });
  }
}

template <class Norm>
void lines_with(const NormalizeJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    lines_of<Norm>(job, static_cast<const T*>(x), static_cast<T*>(out), begin, end);
  });
}

void lines_impl(const NormalizeJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  switch (job.kind) {
    case NormKind::count:
      return lines_with<CountNorm>(job, x, out, begin, end);
    case NormKind::one:
      return lines_with<OneNorm>(job, x, out, begin, end);
    case NormKind::two:
      return lines_with<TwoNorm>(job, x, out, begin, end);
    case NormKind::most:
      return lines_with<MostNorm>(job, x, out, begin, end);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(lines_impl);

void normalize_lines(const NormalizeJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(lines_impl)(job, x, out, begin, end);
}

}  // namespace xpuruntime::cpu
#endif
