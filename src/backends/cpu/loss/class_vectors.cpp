#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/loss/class_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/loss/class_loss.h"
#include "backends/cpu/norm/exponentials.h"
#include "backends/cpu/reduce/accumulate.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// A row's part that stays in the first cache between its passes.
constexpr std::int64_t row_chunk = 4096;

/// What one pass over a row finds: its log-sum-exp as highest + log(sum), and with factors f the sums of f and of
/// f (x - base). The base is near the scores: large ones that differ little would else cancel to nothing.
struct RowSums {
  double highest = 0;
  float base = 0;
  double log_sum = 0;
  double factors = 0;
  double products = 0;

  /// The sum of f (log-sum-exp - x).
  double spread() const { return (log_sum + (highest - static_cast<double>(base))) * factors - products; }
};

/// Goes on from `sums` with the exponentials of one more chunk; `log_sum` is the sum itself until the row is done.
template <class T>
HWY_INLINE void add_exponentials(const T* x, std::size_t n, RowSums& sums) {
  const float highest = highest_of(x, n), shift = shift_of(highest);
  const float sum = sum_of_exp(x, n, shift, [](std::size_t, F32Vec, std::size_t) HWY_ATTR {});
  const double both = std::max(sums.highest, static_cast<double>(highest));
  const double common = std::isinf(both) && both < 0 ? 0 : both;
  sums.log_sum = sums.log_sum * std::exp(sums.highest - common) + static_cast<double>(sum) * std::exp(shift - common);
  sums.highest = both;
}

/// The sums of factor and of factor * (x - base) over a chunk, where factor(i, get) gives the vector at i.
template <class T, class Factor>
HWY_INLINE void add_products(const T* x, std::size_t n, const Factor& factor, RowSums& sums) {
  F32Vec factors = hn::Zero(F32()), products = factors;
  const F32Vec base = hn::Set(F32(), sums.base);
  for_vectors(n, [&](std::size_t i, auto get, auto) HWY_ATTR {
    const auto there = hn::FirstN(F32(), std::min(n - i, f32_lanes()));
    const F32Vec f = hn::IfThenElseZero(there, factor(i, get));
    factors = hn::Add(factors, f);
    products = hn::Add(products, hn::IfThenElseZero(there, hn::Mul(f, hn::Sub(get(x + i), base))));
  });
  sums.factors += static_cast<double>(SumFold::lanes(factors));
  sums.products += static_cast<double>(SumFold::lanes(products));
}

/// One row, chunk by chunk; more(offset, count, sums) sees each while it is in the cache.
template <class T, class More>
HWY_INLINE RowSums sums_of_row(const T* x, std::int64_t classes, const More& more) {
  RowSums sums;
  sums.highest = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < classes; i += row_chunk) {
    const auto count = static_cast<std::size_t>(std::min(row_chunk, classes - i));
    add_exponentials(x + i, count, sums);
    if (i == 0 && std::isfinite(sums.highest)) sums.base = static_cast<float>(sums.highest);
    more(i, count, sums);
  }
  sums.log_sum = std::log(sums.log_sum);
  return sums;
}

HWY_INLINE F32Vec weight_at(const ClassLossJob& job, std::int64_t i) {
  return hn::Set(F32(), job.weight == nullptr ? 1.0f : job.weight[i]);
}

template <class T>
double row_of_class(const ClassLossJob& job, const T* x, std::int64_t target) {
  const RowSums sums = sums_of_row(x, job.lines.length, [&](std::int64_t at, std::size_t n, RowSums& to) HWY_ATTR {
    if (job.smoothing == 0) return;
    if (job.weight != nullptr) {
      return add_products(
          x + at, n, [&](std::size_t i, auto get) HWY_ATTR { return get(job.weight + at + i); }, to);
    }
    const F32Vec base = hn::Set(F32(), to.base);
    to.factors += static_cast<double>(n);
    const auto above = [&](F32Vec v) HWY_ATTR { return hn::Sub(v, base); };
    to.products += static_cast<double>(fold_row<SumFold>(x + at, n, above));
  });
  const double score = static_cast<double>(hn::GetLane(load_first(x + target, 1)));
  const double weight = job.weight == nullptr ? 1 : static_cast<double>(job.weight[target]);
  const double loss = (1 - job.smoothing) * weight * (sums.log_sum - (score - sums.highest));
  if (job.smoothing == 0) return loss;
  return loss + job.share() * sums.spread();
}

template <class T>
double row_of_probabilities(const ClassLossJob& job, const T* x, const T* p) {
  const F32Vec keep = hn::Set(F32(), static_cast<float>(1 - job.smoothing));
  const F32Vec share = hn::Set(F32(), static_cast<float>(job.share()));
  const RowSums sums = sums_of_row(x, job.lines.length, [&](std::int64_t at, std::size_t n, RowSums& to) HWY_ATTR {
    const auto factor = [&](std::size_t i, auto get) HWY_ATTR {
      const F32Vec f = hn::MulAdd(get(p + at + i), keep, share);
      return job.weight == nullptr ? f : hn::Mul(f, get(job.weight + at + i));
    };
    add_products(x + at, n, factor, to);
  });
  return sums.spread();
}

/// A vector of neighbouring positions, one in each lane.
struct ColumnSums {
  F32Vec highest;
  F32Vec base;  // of the products, as in a row
  F32Vec log_sum;
  F32Vec factors;
  F32Vec products;
};

/// factor(j) gives the factors of class j; has_factors says whether there are any.
template <bool has_factors, class T, class Load, class Factor>
HWY_INLINE ColumnSums sums_of_columns(const ClassLossJob& job, const T* x, const Load& get, const Factor& factor) {
  const std::int64_t classes = job.lines.length, step = job.lines.inner;
  F32Vec highest = hn::Neg(hn::Inf(F32()));
  for (std::int64_t j = 0; j < classes; ++j) highest = hn::Max(highest, get(x + j * step));
  const F32Vec shift = shift_of(highest);
  const F32Vec base = hn::IfThenElseZero(hn::IsFinite(highest), highest);
  LongSum sum, factors, products;
  for (std::int64_t j = 0; j < classes; ++j) {
    const F32Vec v = get(x + j * step);
    sum.add(vexp(hn::Sub(v, shift)));
    if constexpr (has_factors) {
      const F32Vec f = factor(j);
      factors.add(f);
      products.add(hn::Mul(f, hn::Sub(v, base)));
    }
  }
  return {highest, base, vlog(sum.all()), factors.all(), products.all()};
}

HWY_INLINE F32Vec spread_loss(const ColumnSums& sums) {
  const F32Vec above = hn::Add(hn::Sub(sums.highest, sums.base), sums.log_sum);
  return hn::Sub(hn::Mul(above, sums.factors), sums.products);
}

/// What each lane's target asks for: its score and its weight, 0 where it does not count.
template <class T>
HWY_INLINE void gather(const ClassLossJob& job, const T* x, const std::int64_t* targets, std::size_t n, float* scores,
                       float* weights) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t target = std::max<std::int64_t>(targets[i], 0);
    scores[i] = hn::GetLane(load_first(x + static_cast<std::int64_t>(i) + target * job.lines.inner, 1));
    weights[i] = targets[i] < 0 ? 0 : job.weight == nullptr ? 1 : job.weight[target];
  }
}

template <class T, class Load>
HWY_INLINE F32Vec columns_of_classes(const ClassLossJob& job, const T* x, const std::int64_t* targets, std::size_t n,
                                     const Load& get) {
  HWY_ALIGN float scores[hn::MaxLanes(F32())] = {}, weights[hn::MaxLanes(F32())] = {};
  gather(job, x, targets, n, scores, weights);
  const auto class_weight = [&](std::int64_t j) HWY_ATTR { return weight_at(job, j); };
  const ColumnSums sums = job.smoothing == 0 ? sums_of_columns<false>(job, x, get, class_weight)
                                             : sums_of_columns<true>(job, x, get, class_weight);
  const F32Vec weight = load(weights), keep = hn::Set(F32(), static_cast<float>(1 - job.smoothing));
  F32Vec loss = hn::Sub(sums.log_sum, hn::Sub(load(scores), sums.highest));
  loss = hn::Mul(hn::Mul(keep, weight), loss);
  if (job.smoothing != 0) {
    loss = hn::MulAdd(hn::Set(F32(), static_cast<float>(job.share())), spread_loss(sums), loss);
  }
  // Not by its weight, which may be 0 where the loss is not a number.
  HWY_ALIGN float counts[hn::MaxLanes(F32())] = {};
  for (std::size_t i = 0; i < n; ++i) counts[i] = targets[i] < 0 ? 0.0f : 1.0f;
  return hn::IfThenElseZero(hn::Ne(load(counts), hn::Zero(F32())), loss);
}

template <class T, class Load>
HWY_INLINE F32Vec columns_of_probabilities(const ClassLossJob& job, const T* x, const T* p, const Load& get) {
  const F32Vec keep = hn::Set(F32(), static_cast<float>(1 - job.smoothing));
  const F32Vec share = hn::Set(F32(), static_cast<float>(job.share()));
  const auto factor = [&](std::int64_t j) HWY_ATTR {
    return hn::Mul(hn::MulAdd(get(p + j * job.lines.inner), keep, share), weight_at(job, j));
  };
  return spread_loss(sums_of_columns<true>(job, x, get, factor));
}

/// Calls body(offset of the first score, index from `begin`, how many) for runs of positions of one outer position.
template <class Body>
HWY_INLINE void for_runs(const Lines& lines, std::int64_t begin, std::int64_t end, const Body& body) {
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t first = i % lines.inner, count = std::min(lines.inner - first, end - i);
    body(i / lines.inner * lines.inner * lines.length + first, i - begin, count);
    i += count;
  }
}

template <class T>
void classes_of(const ClassLossJob& job, const T* x, const std::int64_t* targets, std::int64_t begin, std::int64_t end,
                float* losses) {
  for_runs(job.lines, begin, end, [&](std::int64_t offset, std::int64_t at, std::int64_t count) HWY_ATTR {
    if (job.lines.inner == 1) {
      losses[at] = targets[at] < 0 ? 0 : static_cast<float>(row_of_class(job, x + offset, targets[at]));
      return;
    }
    for_vectors(static_cast<std::size_t>(count), [&](std::size_t i, auto get, auto put) HWY_ATTR {
      const std::size_t n = std::min(f32_lanes(), static_cast<std::size_t>(count) - i);
      put(columns_of_classes(job, x + offset + i, targets + at + i, n, get), losses + at + i);
    });
  });
}

template <class T>
void probabilities_of(const ClassLossJob& job, const T* x, const T* p, std::int64_t begin, std::int64_t end,
                      float* losses) {
  for_runs(job.lines, begin, end, [&](std::int64_t offset, std::int64_t at, std::int64_t count) HWY_ATTR {
    if (job.lines.inner == 1) {
      losses[at] = static_cast<float>(row_of_probabilities(job, x + offset, p + offset));
      return;
    }
    for_vectors(static_cast<std::size_t>(count), [&](std::size_t i, auto get, auto put) HWY_ATTR {
      put(columns_of_probabilities(job, x + offset + i, p + offset + i, get), losses + at + i);
    });
  });
}

void classes_impl(const ClassLossJob& job, const void* scores, const std::int64_t* targets, std::int64_t begin,
                  std::int64_t end, float* losses) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    classes_of(job, static_cast<const decltype(storage)*>(scores), targets, begin, end, losses);
  });
}

void probabilities_impl(const ClassLossJob& job, const void* scores, const void* probabilities, std::int64_t begin,
                        std::int64_t end, float* losses) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    probabilities_of(job, static_cast<const T*>(scores), static_cast<const T*>(probabilities), begin, end, losses);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(classes_impl);
HWY_EXPORT(probabilities_impl);

void cross_entropy_of_classes(const ClassLossJob& job, const void* scores, const std::int64_t* targets,
                              std::int64_t begin, std::int64_t end, float* losses) {
  HWY_DYNAMIC_DISPATCH(classes_impl)(job, scores, targets, begin, end, losses);
}

void cross_entropy_of_probabilities(const ClassLossJob& job, const void* scores, const void* probabilities,
                                    std::int64_t begin, std::int64_t end, float* losses) {
  HWY_DYNAMIC_DISPATCH(probabilities_impl)(job, scores, probabilities, begin, end, losses);
}

}  // namespace xpuruntime::cpu
#endif
