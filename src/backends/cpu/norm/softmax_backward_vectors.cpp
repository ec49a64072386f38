#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/softmax_backward_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/exponentials.h"
#include "backends/cpu/norm/softmax.h"
#include "backends/cpu/reduce/accumulate.h"

// With y = softmax(x) and g the gradient of the output, that of x is y (g - sum of g y), and for log_softmax
// g - y (sum of g). The exponentials are computed anew in each pass: a row may be longer than any buffer.

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// The gradient where exp(x - shift) is e, the row's exponentials sum up to 1 / scale, and `total` is the sum over g.
template <bool log>
HWY_INLINE F32Vec gradient_at(F32Vec e, F32Vec g, F32Vec scale, F32Vec total) {
  const F32Vec y = hn::Mul(e, scale);
  return log ? hn::NegMulAdd(y, total, g) : hn::Mul(y, hn::Sub(g, total));
}

template <bool log, class T>
void gradient_of_row(const T* x, const T* g, T* out, std::size_t n) {
  const F32Vec shift = hn::Set(F32(), shift_of(highest_of(x, n)));
  LongSum sums, totals;
  for_vectors(n, [&](std::size_t i, auto get, auto) HWY_ATTR {
    const auto there = hn::FirstN(F32(), std::min(n - i, f32_lanes()));
    const F32Vec e = hn::IfThenElseZero(there, vexp(hn::Sub(get(x + i), shift)));
    sums.add(e);
    totals.add(hn::IfThenElseZero(there, log ? get(g + i) : hn::Mul(get(g + i), e)));
  });
  const float inverse = 1 / SumFold::lanes(sums.all()), total = SumFold::lanes(totals.all());
  const F32Vec scale = hn::Set(F32(), inverse), all = hn::Set(F32(), log ? total : total * inverse);
  for_vectors(n, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    put(gradient_at<log>(vexp(hn::Sub(get(x + i), shift)), get(g + i), scale, all), out + i);
  });
}

/// As many neighbouring lines as `count` says, one in each lane.
template <bool log, class T>
void gradient_of_columns(const Lines& lines, const T* x, const T* g, T* out, std::size_t count) {
  const std::int64_t step = lines.inner;
  for_vectors(count, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    F32Vec highest = hn::Neg(hn::Inf(F32()));
    for (std::int64_t j = 0; j < lines.length; ++j) highest = hn::Max(highest, get(x + j * step + i));
    const F32Vec shift = shift_of(highest);
    LongSum sum, total;
    for (std::int64_t j = 0; j < lines.length; ++j) {
      const F32Vec e = vexp(hn::Sub(get(x + j * step + i), shift)), gradient = get(g + j * step + i);
      sum.add(e);
      log ? total.add(gradient) : total.add_product(gradient, e);
    }
    const F32Vec scale = hn::Div(constant(1), sum.all()), all = log ? total.all() : hn::Mul(total.all(), scale);
    for (std::int64_t j = 0; j < lines.length; ++j) {
      const F32Vec e = vexp(hn::Sub(get(x + j * step + i), shift));
      put(gradient_at<log>(e, get(g + j * step + i), scale, all), out + j * step + i);
    }
  });
}

template <bool log, class T>
void gradient_of_lines(const Lines& lines, const T* x, const T* g, T* out, std::int64_t begin, std::int64_t end) {
  while (begin < end) {
    const std::int64_t outer = begin / lines.inner, first = begin % lines.inner;
    const std::int64_t count = std::min(lines.inner - first, end - begin);
    const std::int64_t at = outer * lines.length * lines.inner + first;
    if (lines.inner == 1) {
      gradient_of_row<log>(x + at, g + at, out + at, static_cast<std::size_t>(lines.length));
    } else {
      gradient_of_columns<log>(lines, x + at, g + at, out + at, static_cast<std::size_t>(count));
    }
    begin += count;
  }
}

}  // namespace

void gradient_of_softmax(const SoftmaxJob& job, const void* x, const void* g, void* out, std::int64_t begin,
                         std::int64_t end) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const auto of_lines = job.log ? gradient_of_lines<true, T> : gradient_of_lines<false, T>;
    of_lines(job.lines, static_cast<const T*>(x), static_cast<const T*>(g), static_cast<T*>(out), begin, end);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(gradient_of_softmax);

void softmax_gradient(const SoftmaxJob& job, const void* x, const void* gradient, void* out, std::int64_t begin,
                      std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(gradient_of_softmax)(job, x, gradient, out, begin, end);
}

}  // namespace xpuruntime::cpu
#endif
