#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/softmax_column_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/exponentials.h"
#include "backends/cpu/norm/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

// Exponentials of narrow types that are kept for the last pass.
constexpr std::int64_t kept_floats = 8192;
// Terms that are added up before their sum goes to a longer one.
constexpr std::int64_t rows_at_once = 256;

/// `vectors` neighbouring columns at a time, a line in each lane; the last vector may have `left` lanes only.
template <class T, int vectors>
class Columns {
 public:
  Columns(const SoftmaxJob& job, std::size_t left) : job_(job), left_(left) {}

  void run(const T* x, T* out, float* buffer) const {
    F32Vec highest[vectors];
    find_highest(x, highest);
    const bool keep = !job_.log && (std::is_same_v<T, float> || job_.lines.length * vectors * lanes() <= kept_floats);
    F32Vec sum[vectors];
    if (keep) {
      add_up<true>(x, out, buffer, highest, sum);
      return scale(out, buffer, sum);
    }
    add_up<false>(x, out, buffer, highest, sum);
    job_.log ? write_log(x, out, highest, sum) : write_again(x, out, highest, sum);
  }

 private:
  static std::int64_t lanes() { return static_cast<std::int64_t>(f32_lanes()); }

  template <class From>
  HWY_INLINE F32Vec get(const From* from, int v) const {
    from += v * lanes();
    if (vectors > 1 || left_ == f32_lanes()) return load(from);
    return load_first(from, left_);
  }

  template <class To>
  HWY_INLINE void put(F32Vec value, To* to, int v) const {
    to += v * lanes();
    if (vectors > 1 || left_ == f32_lanes()) return store(value, to);
    store_first(value, to, left_);
  }

  void find_highest(const T* x, F32Vec* highest) const {
    F32Vec h[vectors];
    for (F32Vec& v : h) v = hn::Neg(hn::Inf(F32()));
    for (std::int64_t j = 0; j < job_.lines.length; ++j) {
      for (int v = 0; v < vectors; ++v) h[v] = hn::Max(h[v], get(x + j * job_.lines.inner, v));
    }
    for (int v = 0; v < vectors; ++v) highest[v] = h[v];
  }

  /// Where the exponentials of row j are kept: f32 in the output itself.
  HWY_INLINE float* kept_row(T* out, float* buffer, std::int64_t j) const {
    if constexpr (std::is_same_v<T, float>) return out + j * job_.lines.inner;
    return buffer + j * vectors * lanes();
  }

  template <bool keep>
  void add_up(const T* x, T* out, float* buffer, const F32Vec* highest, F32Vec* sum) const {
    F32Vec shift[vectors];
    for (int v = 0; v < vectors; ++v) {
      sum[v] = hn::Zero(F32());
      shift[v] = shift_of(highest[v]);
    }
    for (std::int64_t first = 0; first < job_.lines.length; first += rows_at_once) {
      F32Vec total[vectors];
      for (F32Vec& t : total) t = hn::Zero(F32());
      const std::int64_t last = std::min(job_.lines.length, first + rows_at_once);
      for (std::int64_t j = first; j < last; ++j) {
        for (int v = 0; v < vectors; ++v) {
          const F32Vec e = vexp(hn::Sub(get(x + j * job_.lines.inner, v), shift[v]));
          if constexpr (keep) put(e, kept_row(out, buffer, j), v);
          total[v] = hn::Add(total[v], e);
        }
      }
      for (int v = 0; v < vectors; ++v) sum[v] = hn::Add(sum[v], total[v]);
    }
  }

  void scale(T* out, float* buffer, const F32Vec* sum) const {
    F32Vec factor[vectors];
    for (int v = 0; v < vectors; ++v) factor[v] = hn::Div(constant(1), sum[v]);
    for (std::int64_t j = 0; j < job_.lines.length; ++j) {
      for (int v = 0; v < vectors; ++v) {
        const F32Vec e = get(static_cast<const float*>(kept_row(out, buffer, j)), v);
        put(hn::Mul(e, factor[v]), out + j * job_.lines.inner, v);
      }
    }
  }

  void write_log(const T* x, T* out, const F32Vec* highest, const F32Vec* sum) const {
    F32Vec log_sum[vectors];
    for (int v = 0; v < vectors; ++v) log_sum[v] = vlog(sum[v]);
    for (std::int64_t j = 0; j < job_.lines.length; ++j) {
      for (int v = 0; v < vectors; ++v) {
        const F32Vec shifted = hn::Sub(get(x + j * job_.lines.inner, v), highest[v]);
        put(hn::Sub(shifted, log_sum[v]), out + j * job_.lines.inner, v);
      }
    }
  }

  void write_again(const T* x, T* out, const F32Vec* highest, const F32Vec* sum) const {
    F32Vec shift[vectors], factor[vectors];
    for (int v = 0; v < vectors; ++v) {
      shift[v] = shift_of(highest[v]);
      factor[v] = hn::Div(constant(1), sum[v]);
    }
    for (std::int64_t j = 0; j < job_.lines.length; ++j) {
      for (int v = 0; v < vectors; ++v) {
        const F32Vec e = vexp(hn::Sub(get(x + j * job_.lines.inner, v), shift[v]));
        put(hn::Mul(e, factor[v]), out + j * job_.lines.inner, v);
      }
    }
  }

  const SoftmaxJob& job_;
  std::size_t left_;
};

/// Columns [begin, end) of one outer position.
template <class T>
void columns_of(const SoftmaxJob& job, const T* x, T* out, std::int64_t begin, std::int64_t end) {
  HWY_ALIGN float buffer[std::is_same_v<T, float> ? 1 : kept_floats];
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  std::int64_t c = begin;
  for (; c + 4 * lanes <= end; c += 4 * lanes) Columns<T, 4>(job, f32_lanes()).run(x + c, out + c, buffer);
  for (; c < end; c += lanes) {
    const auto left = static_cast<std::size_t>(std::min(lanes, end - c));
    Columns<T, 1>(job, left).run(x + c, out + c, buffer);
  }
}

void columns_impl(const SoftmaxJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const std::int64_t inner = job.lines.inner, plane = inner * job.lines.length;
    while (begin < end) {
      const std::int64_t outer = begin / inner, first = begin % inner;
      const std::int64_t last = std::min(inner, first + end - begin);
      columns_of(job, static_cast<const T*>(x) + outer * plane, static_cast<T*>(out) + outer * plane, first, last);
      begin += last - first;
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(columns_impl);

void softmax_of_columns(const SoftmaxJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(columns_impl)(job, x, out, begin, end);
}

}  // namespace xpuruntime::cpu
#endif
