#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/loss/class_backward_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/loss/class_loss.h"
#include "backends/cpu/norm/exponentials.h"
#include "backends/cpu/reduce/accumulate.h"

// With f what a position's target gives to each class and g the gradient of its loss, the gradient of the scores is
// g ((sum of f) softmax(x) - f).

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class T>
float sum_of_row(const T* x, std::size_t n, float shift) {
  return sum_of_exp(x, n, shift, [](std::size_t, F32Vec, std::size_t) HWY_ATTR {});
}

/// out = scale exp(x - shift) - less, where less(i, get) gives the vector at i.
template <class T, class Less>
HWY_INLINE void write_row(const T* x, std::size_t n, float shift, float scale, const Less& less, T* out) {
  const F32Vec h = hn::Set(F32(), shift), s = hn::Set(F32(), scale);
  for_vectors(n, [&](std::size_t i, auto get, auto put)
                     HWY_ATTR { put(hn::MulSub(vexp(hn::Sub(get(x + i), h)), s, less(i, get)), out + i); });
}

template <class T>
void row_of_class(const ClassLossJob& job, double weights, const T* x, std::int64_t target, float g, T* out) {
  const auto n = static_cast<std::size_t>(job.lines.length);
  if (target < 0) {
    for_vectors(n, [&](std::size_t i, auto, auto put) HWY_ATTR { put(hn::Zero(F32()), out + i); });
    return;
  }
  const double weight = job.weight == nullptr ? 1 : static_cast<double>(job.weight[target]);
  const double kept = (1 - job.smoothing) * weight, share = job.share(), gradient = static_cast<double>(g);
  const float shift = shift_of(highest_of(x, n));
  const auto scale = static_cast<float>(gradient * (kept + share * weights) / sum_of_row(x, n, shift));
  const F32Vec even = hn::Set(F32(), static_cast<float>(gradient * share));
  const auto less = [&](std::size_t i, auto get)
                        HWY_ATTR { return job.weight == nullptr ? even : hn::Mul(even, get(job.weight + i)); };
  write_row(x, n, shift, scale, less, out);
  const F32Vec own = hn::Set(F32(), static_cast<float>(gradient * (kept + share * weight)));
  const F32Vec e = vexp(hn::Sub(load_first(x + target, 1), hn::Set(F32(), shift)));
  store_first(hn::MulSub(e, hn::Set(F32(), scale), own), out + target, 1);
}

template <class T>
void row_of_probabilities(const ClassLossJob& job, const T* x, const T* p, float g, T* out) {
  const auto n = static_cast<std::size_t>(job.lines.length);
  const F32Vec keep = hn::Set(F32(), static_cast<float>(1 - job.smoothing));
  const F32Vec even = hn::Set(F32(), static_cast<float>(job.share())), gradient = hn::Set(F32(), g);
  const auto factor = [&](std::size_t i, auto get) HWY_ATTR {
    const F32Vec f = hn::MulAdd(get(p + i), keep, even);
    return job.weight == nullptr ? f : hn::Mul(f, get(job.weight + i));
  };
  LongSum factors;
  for_vectors(n, [&](std::size_t i, auto get, auto) HWY_ATTR {
    const auto there = hn::FirstN(F32(), std::min(n - i, f32_lanes()));
    factors.add(hn::IfThenElseZero(there, factor(i, get)));
  });
  const float shift = shift_of(highest_of(x, n));
  const float scale = g * SumFold::lanes(factors.all()) / sum_of_row(x, n, shift);
  write_row(
      x, n, shift, scale, [&](std::size_t i, auto get) HWY_ATTR { return hn::Mul(gradient, factor(i, get)); }, out);
}

/// A vector of neighbouring positions: exp(x - shift), the inverse of its sum.
struct ColumnScale {
  F32Vec shift;
  F32Vec inverse;
};

template <class T, class Load>
HWY_INLINE ColumnScale scale_of_columns(const Lines& lines, const T* x, const Load& get) {
  F32Vec highest = hn::Neg(hn::Inf(F32()));
  LongSum sum;
  for (std::int64_t j = 0; j < lines.length; ++j) highest = hn::Max(highest, get(x + j * lines.inner));
  const F32Vec shift = shift_of(highest);
  for (std::int64_t j = 0; j < lines.length; ++j) {
    sum.add(vexp(hn::Sub(get(x + j * lines.inner), shift)));
  }
  return {shift, hn::Div(constant(1), sum.all())};
}

HWY_INLINE F32Vec weight_at(const ClassLossJob& job, std::int64_t i) {
  return hn::Set(F32(), job.weight == nullptr ? 1.0f : job.weight[i]);
}

/// The targets of some neighbouring positions, one in each lane; lanes without one are as those that do not count.
struct TargetLanes {
  TargetLanes(const ClassLossJob& job, const std::int64_t* targets, const float* gradients, std::size_t count) {
    HWY_ALIGN std::int32_t classes[hn::MaxLanes(F32())];
    HWY_ALIGN float weights[hn::MaxLanes(F32())], own[hn::MaxLanes(F32())];
    for (std::size_t i = 0; i < f32_lanes(); ++i) {
      const std::int64_t target = i < count ? targets[i] : -1;
      classes[i] = static_cast<std::int32_t>(target);
      weights[i] = target < 0 ? 0.0f : job.weight == nullptr ? 1.0f : job.weight[target];
      own[i] = target < 0 ? 0.0f : gradients[i];
    }
    target = hn::Load(I32(), classes);
    gradient = hn::Load(F32(), own);
    kept = hn::Mul(hn::Load(F32(), weights), hn::Set(F32(), static_cast<float>(1 - job.smoothing)));
  }

  I32Vec target;
  F32Vec gradient;
  F32Vec kept;
};

template <class T>
void columns_of_classes(const ClassLossJob& job, double weights, const T* x, const std::int64_t* targets,
                        const float* gradients, std::size_t count, T* out) {
  const F32Vec even = hn::Set(F32(), static_cast<float>(job.share()));
  const F32Vec all = hn::Set(F32(), static_cast<float>(job.share() * weights));
  for_vectors(count, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    const TargetLanes lanes(job, targets + i, gradients + i, count - i);
    const ColumnScale column = scale_of_columns(job.lines, x + i, get);
    const F32Vec scale = hn::Mul(hn::Add(lanes.kept, all), column.inverse);
    const auto counts = hn::RebindMask(F32(), hn::Gt(lanes.target, hn::Set(I32(), -1)));
    for (std::int64_t j = 0; j < job.lines.length; ++j) {
      const auto here = hn::RebindMask(F32(), hn::Eq(lanes.target, hn::Set(I32(), static_cast<std::int32_t>(j))));
      const F32Vec factor = hn::MulAdd(even, weight_at(job, j), hn::IfThenElseZero(here, lanes.kept));
      const F32Vec e = vexp(hn::Sub(get(x + j * job.lines.inner + i), column.shift));
      const F32Vec value = hn::Mul(lanes.gradient, hn::MulSub(e, scale, factor));
      put(hn::IfThenElseZero(counts, value), out + j * job.lines.inner + i);
    }
  });
}

template <class T>
void columns_of_probabilities(const ClassLossJob& job, const T* x, const T* p, const float* gradients,
                              std::size_t count, T* out) {
  const F32Vec keep = hn::Set(F32(), static_cast<float>(1 - job.smoothing));
  const F32Vec even = hn::Set(F32(), static_cast<float>(job.share()));
  for_vectors(count, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    const auto factor = [&](std::int64_t j) HWY_ATTR {
      return hn::Mul(weight_at(job, j), hn::MulAdd(get(p + j * job.lines.inner + i), keep, even));
    };
    LongSum factors;
    for (std::int64_t j = 0; j < job.lines.length; ++j) factors.add(factor(j));
    const ColumnScale column = scale_of_columns(job.lines, x + i, get);
    const F32Vec scale = hn::Mul(factors.all(), column.inverse), gradient = get(gradients + i);
    for (std::int64_t j = 0; j < job.lines.length; ++j) {
      const F32Vec e = vexp(hn::Sub(get(x + j * job.lines.inner + i), column.shift));
      put(hn::Mul(gradient, hn::MulSub(e, scale, factor(j))), out + j * job.lines.inner + i);
    }
  });
}

/// Calls rows(position, offset) for each position, or columns(position, offset, count) for neighbours.
template <class Rows, class Columns>
void for_positions(const Lines& lines, std::int64_t begin, std::int64_t end, const Rows& rows, const Columns& columns) {
  if (lines.inner == 1) {
    for (std::int64_t i = begin; i < end; ++i) rows(i - begin, i * lines.length);
    return;
  }
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t first = i % lines.inner, count = std::min(lines.inner - first, end - i);
    columns(i - begin, i / lines.inner * lines.length * lines.inner + first, static_cast<std::size_t>(count));
    i += count;
  }
}

}  // namespace

void gradient_of_classes(const ClassLossJob& job, double weights, const void* scores, const std::int64_t* targets,
                         const float* gradients, std::int64_t begin, std::int64_t end, void* to) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const T* x = static_cast<const T*>(scores);
    T* out = static_cast<T*>(to);
    for_positions(
        job.lines, begin, end,
        [&](std::int64_t i, std::int64_t at)
            HWY_ATTR { row_of_class(job, weights, x + at, targets[i], gradients[i], out + at); },
        [&](std::int64_t i, std::int64_t at, std::size_t count)
            HWY_ATTR { columns_of_classes(job, weights, x + at, targets + i, gradients + i, count, out + at); });
  });
}

void gradient_of_probabilities(const ClassLossJob& job, const void* scores, const void* probabilities,
                               const float* gradients, std::int64_t begin, std::int64_t end, void* to) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const T* x = static_cast<const T*>(scores);
    const T* p = static_cast<const T*>(probabilities);
    T* out = static_cast<T*>(to);
    for_positions(
        job.lines, begin, end,
        [&](std::int64_t i, std::int64_t at)
            HWY_ATTR { row_of_probabilities(job, x + at, p + at, gradients[i], out + at); },
        [&](std::int64_t i, std::int64_t at, std::size_t count)
            HWY_ATTR { columns_of_probabilities(job, x + at, p + at, gradients + i, count, out + at); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(gradient_of_classes);
HWY_EXPORT(gradient_of_probabilities);

void cross_entropy_gradient_of_classes(const ClassLossJob& job, double weights, const void* scores,
                                       const std::int64_t* targets, const float* gradients, std::int64_t begin,
                                       std::int64_t end, void* out) {
  HWY_DYNAMIC_DISPATCH(gradient_of_classes)(job, weights, scores, targets, gradients, begin, end, out);
}

void cross_entropy_gradient_of_probabilities(const ClassLossJob& job, const void* scores, const void* probabilities,
                                             const float* gradients, std::int64_t begin, std::int64_t end, void* out) {
  HWY_DYNAMIC_DISPATCH(gradient_of_probabilities)(job, scores, probabilities, gradients, begin, end, out);
}

}  // namespace xpuruntime::cpu
#endif
