// Sums and extremes of contiguous elements. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_REDUCE_ACCUMULATE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_REDUCE_ACCUMULATE_H_
#undef XRT_CPU_REDUCE_ACCUMULATE_H_
#else
#define XRT_CPU_REDUCE_ACCUMULATE_H_
#endif

#include "backends/cpu/base/extremes.h"
#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// Adds; an element that is not there is 0.
struct SumFold {
  static HWY_INLINE F32Vec empty() { return hn::Zero(F32()); }
  static HWY_INLINE F32Vec fold(F32Vec a, F32Vec b) { return hn::Add(a, b); }
  static HWY_INLINE float lanes(F32Vec v) { return hn::GetLane(hn::SumOfLanes(F32(), v)); }
};

/// A sum of any number of vectors: of runs from zero on, whose sums go to a longer one.
class LongSum {
 public:
  HWY_INLINE LongSum() : run_(hn::Zero(F32())), total_(run_) {}
  HWY_INLINE void add(F32Vec value) {
    run_ = hn::Add(run_, value);
    end_run();
  }
  HWY_INLINE void add_product(F32Vec a, F32Vec b) {
    run_ = hn::MulAdd(a, b, run_);
    end_run();
  }
  HWY_INLINE F32Vec all() const { return hn::Add(total_, run_); }

 private:
  HWY_INLINE void end_run() {
    if (++count_ % 256 != 0) return;
    total_ = all();
    run_ = hn::Zero(F32());
  }

  F32Vec run_, total_;
  std::uint32_t count_ = 0;
};

struct MaxFold {
  static HWY_INLINE F32Vec empty() { return hn::Neg(hn::Inf(F32())); }
  static HWY_INLINE F32Vec fold(F32Vec a, F32Vec b) { return maximum(a, b); }
  static HWY_INLINE float lanes(F32Vec v) { return hn::GetLane(maximum_of_lanes(v)); }
};

struct MinFold {
  static HWY_INLINE F32Vec empty() { return hn::Inf(F32()); }
  static HWY_INLINE F32Vec fold(F32Vec a, F32Vec b) { return minimum(a, b); }
  static HWY_INLINE float lanes(F32Vec v) { return hn::GetLane(minimum_of_lanes(v)); }
};

/// map(x[0]) folded with the others. Four chains hide the latency of the fold, and shorten each lane's sum.
template <class Fold, class T, class Map>
HWY_INLINE F32Vec fold_lanes(const T* x, std::size_t n, const Map& map) {
  const std::size_t lanes = f32_lanes();
  F32Vec a = Fold::empty(), b = a, c = a, d = a;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = Fold::fold(a, map(load(x + i)));
    b = Fold::fold(b, map(load(x + i + lanes)));
    c = Fold::fold(c, map(load(x + i + 2 * lanes)));
    d = Fold::fold(d, map(load(x + i + 3 * lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = Fold::fold(a, map(load(x + i)));
  if (i < n) {
    const F32Vec last = map(load_first(x + i, n - i));
    b = Fold::fold(b, hn::IfThenElse(hn::FirstN(F32(), n - i), last, Fold::empty()));
  }
  return Fold::fold(Fold::fold(a, b), Fold::fold(c, d));
}

template <class Fold, class T, class Map>
HWY_INLINE float fold_row(const T* x, std::size_t n, const Map& map) {
  return Fold::lanes(fold_lanes<Fold>(x, n, map));
}

template <class Fold, class T>
HWY_INLINE float fold_row(const T* x, std::size_t n) {
  return fold_row<Fold>(x, n, [](F32Vec v) HWY_ATTR { return v; });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
