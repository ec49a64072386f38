#include <algorithm>

#include "backends/cpu/matmul/skinny_task.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/skinny_vectors.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/matmul/packed_blocks.h"
#include "backends/cpu/matmul/packed_tile.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// Terms that one accumulator takes from zero on; its sum then goes to a longer one. More where k is so long that the
/// number of runs would show instead.
HWY_INLINE std::int64_t run_terms(std::int64_t k) { return std::max<std::int64_t>(512, k >> 20 << 3); }

/// Rows of `many` taken at once: enough sums under way to hide the multipliers' delay, few enough for the registers.
constexpr std::size_t rows_at_once(std::size_t few) {
  constexpr std::size_t registers = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM ? 16 : 8;
  return few == 1 ? 8 : HWY_MAX(std::size_t{1}, registers / few);
}

/// sums[i * sums_step + r] for `few` vectors, `step` apart, and `rows` rows, each a dot product along k or added to
/// what is there. A sum has one vector of partial sums, whatever else is under way.
template <std::size_t few, std::size_t rows, class T>
HWY_INLINE void dot_rows(const float* x, std::int64_t step, const T* many, std::int64_t outer, std::int64_t k,
                         float* sums, std::int64_t sums_step, bool accumulate) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  F32Vec partial[few][rows];
  unrolled<few>([&](auto i) XRT_UNROLLED_BODY {
    unrolled<rows>([&](auto r) XRT_UNROLLED_BODY { partial[i][r] = hn::Zero(F32()); });
  });
  const T* row[rows];
  unrolled<rows>([&](auto r) XRT_UNROLLED_BODY { row[r] = many + static_cast<std::int64_t>(r) * outer; });
  const auto add = [&](std::int64_t p, auto get) XRT_UNROLLED_BODY {
    F32Vec weights[rows];
    unrolled<rows>([&](auto r) XRT_UNROLLED_BODY { weights[r] = get(row[r] + p); });
    unrolled<few>([&](auto i) XRT_UNROLLED_BODY {
      const F32Vec left = load(x + static_cast<std::int64_t>(i) * step + p);
      unrolled<rows>([&](auto r) XRT_UNROLLED_BODY { partial[i][r] = hn::MulAdd(left, weights[r], partial[i][r]); });
    });
  };
  std::int64_t p = 0;
  for (; p + lanes <= k; p += lanes) {
    // The rows after these: the processor foresees nothing beyond a page.
    unrolled<rows>([&](auto r)
                       XRT_UNROLLED_BODY { hwy::Prefetch(row[r] + static_cast<std::int64_t>(rows) * outer + p); });
    add(p, [](const T* from) XRT_UNROLLED_BODY { return load(from); });
  }
  if (const std::size_t left = static_cast<std::size_t>(k - p); left != 0) {
    add(p, [left](const T* from) XRT_UNROLLED_BODY { return load_first(from, left); });
  }
  unrolled<few>([&](auto i) XRT_UNROLLED_BODY {
    unrolled<rows>([&](auto r) XRT_UNROLLED_BODY {
      float& sum = sums[static_cast<std::int64_t>(i) * sums_step + static_cast<std::int64_t>(r)];
      const float total = hn::GetLane(hn::SumOfLanes(F32(), partial[i][r]));
      sum = accumulate ? sum + total : total;
    });
  });
}

/// All of k, in runs.
template <std::size_t few, std::size_t rows, class T>
HWY_INLINE void dot_runs(const float* x, const T* many, std::int64_t outer, std::int64_t k, float* sums,
                         std::int64_t sums_step) {
  const std::int64_t step = skinny_few_step(k), run = 2 * run_terms(k) * static_cast<std::int64_t>(f32_lanes());
  for (std::int64_t p = 0; p == 0 || p < k; p += run) {
    dot_rows<few, rows>(x + p, step, many + p, outer, std::min(run, k - p), sums, sums_step, p != 0);
  }
}

// Not inline: as one function, all dtypes and counts would take the compiler a minute.
template <std::size_t few, class T>
HWY_NOINLINE void dot_block(const float* x, const T* many, std::int64_t outer, std::int64_t count, std::int64_t k,
                            float* sums, std::int64_t sums_step) {
  constexpr std::int64_t rows = rows_at_once(few);
  std::int64_t j = 0;
  for (; j + rows <= count; j += rows) {
    dot_runs<few, static_cast<std::size_t>(rows)>(x, many + j * outer, outer, k, sums + j, sums_step);
  }
  for (; j < count; ++j) dot_runs<few, 1>(x, many + j * outer, outer, k, sums + j, sums_step);
}

/// sums[i, lanes of j] += the products of `depth` rows of many, in their order.
template <std::size_t few, std::size_t depth, class T>
HWY_INLINE void add_rows(const float* x, std::int64_t x_step, const T* many, std::int64_t inner, std::int64_t count,
                         float* sums, std::int64_t sums_step) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const auto add = [&](std::int64_t j, auto get) XRT_UNROLLED_BODY {
    F32Vec total[few];
    unrolled<few>([&](auto i)
                      XRT_UNROLLED_BODY { total[i] = load(sums + static_cast<std::int64_t>(i) * sums_step + j); });
    unrolled<depth>([&](auto p) XRT_UNROLLED_BODY {
      const F32Vec weights = get(many + static_cast<std::int64_t>(p) * inner + j);
      unrolled<few>([&](auto i) XRT_UNROLLED_BODY {
        total[i] = hn::MulAdd(hn::Set(F32(), x[static_cast<std::int64_t>(i) * x_step + static_cast<std::int64_t>(p)]),
                              weights, total[i]);
      });
    });
    unrolled<few>([&](auto i)
                      XRT_UNROLLED_BODY { store(total[i], sums + static_cast<std::int64_t>(i) * sums_step + j); });
  };
  std::int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    unrolled<depth>([&](auto p)
                        XRT_UNROLLED_BODY { hwy::Prefetch(many + static_cast<std::int64_t>(p + depth) * inner + j); });
    add(j, [](const T* from) XRT_UNROLLED_BODY { return load(from); });
  }
  if (const std::size_t left = static_cast<std::size_t>(count - j); left != 0) {
    add(j, [left](const T* from) XRT_UNROLLED_BODY { return load_first(from, left); });
  }
}

/// The rows from `begin` to `end` of many.
template <std::size_t few, class T>
HWY_INLINE void add_run(const float* x, std::int64_t x_step, const T* many, std::int64_t inner, std::int64_t count,
                        std::int64_t begin, std::int64_t end, float* sums, std::int64_t sums_step) {
  constexpr std::int64_t depth = few <= 2 ? 8 : 4;
  std::fill_n(sums, static_cast<std::int64_t>(few) * sums_step, 0.0f);
  std::int64_t p = begin;
  for (; p + depth <= end; p += depth) {
    add_rows<few, static_cast<std::size_t>(depth)>(x + p, x_step, many + p * inner, inner, count, sums, sums_step);
  }
  for (; p < end; ++p) add_rows<few, 1>(x + p, x_step, many + p * inner, inner, count, sums, sums_step);
}

/// The sums of runs after the first wait behind the `skinny_sums` floats of the result.
template <std::size_t few, class T>
HWY_NOINLINE void add_block(const float* x, const T* many, std::int64_t inner, std::int64_t count, std::int64_t k,
                            float* sums, std::int64_t sums_step) {
  const std::int64_t x_step = skinny_few_step(k), run = run_terms(k);
  add_run<few>(x, x_step, many, inner, count, 0, std::min(run, k), sums, sums_step);
  float* const more = sums + skinny_sums;
  for (std::int64_t p = run; p < k; p += run) {
    add_run<few>(x, x_step, many, inner, count, p, std::min(p + run, k), more, sums_step);
    for_vectors(few * static_cast<std::size_t>(sums_step), [&](std::size_t i, auto get, auto put) HWY_ATTR {
      put(hn::Add(get(sums + i), get(more + i)), sums + i);
    });
  }
}

/// Calls body with padded_few as a constant.
template <class Body>
HWY_INLINE void with_few(std::int64_t few, const Body& body) {
  if (few == 1) return body(std::integral_constant<std::size_t, 1>());
  if (few == 2) return body(std::integral_constant<std::size_t, 2>());
  if (few == 4) return body(std::integral_constant<std::size_t, 4>());
  body(std::integral_constant<std::size_t, 8>());
}

class SkinnyRunner {
 public:
  explicit SkinnyRunner(const SkinnyTask& task)
      : task_(task), few_(padded_few(task.few_count)), x_(task.buffer), sums_(x_ + few_ * skinny_few_step(task.k)) {}

  void run() {
    widen_few();
    const bool dots = task_.many.inner == 1;
    // Even chunks of whole vectors; those of dots need only be large enough to finish in vectors.
    const std::int64_t most = dots ? most_tile_lanes : skinny_sums / few_ / 16 * 16;
    for (std::int64_t j = task_.begin; j < task_.end; j += most) {
      const std::int64_t count = std::min(most, task_.end - j);
      sum_chunk(dots, j, count, most);
      finish_chunk(j, count, most);
    }
  }

 private:
  void widen_few() {
    const std::int64_t step = skinny_few_step(task_.k);
    std::fill_n(x_, few_ * step, 0.0f);
    with_storage(task_.few.dtype, [&](auto storage) HWY_ATTR {
      using T = decltype(storage);
      gather(Gather<T>{static_cast<const T*>(task_.few.data), task_.few.outer, task_.few.inner, task_.few_count,
                       task_.k, x_, step});
    });
  }

  void sum_chunk(bool dots, std::int64_t j, std::int64_t count, std::int64_t step) {
    with_storage(task_.many.dtype, [&](auto storage) HWY_ATTR {
      using T = decltype(storage);
      const T* many = static_cast<const T*>(task_.many.data) + j * task_.many.outer;
      with_few(few_, [&](auto few) HWY_ATTR {
        if (dots) {
          dot_block<few>(x_, many, task_.many.outer, count, task_.k, sums_, step);
        } else {
          add_block<few>(x_, many, task_.many.inner, count, task_.k, sums_, step);
        }
      });
    });
  }

  void finish_chunk(std::int64_t j, std::int64_t count, std::int64_t step) {
    with_storage(task_.out_dtype, [&](auto storage) HWY_ATTR {
      using T = decltype(storage);
      const std::int64_t most = task_.out_many == 1 ? count : most_tile_lanes;
      for (std::int64_t at = 0; at < count; at += most) {
        finish(Finish<T>{sums_ + at, step, task_.few_count, std::min(most, count - at),
                         static_cast<T*>(task_.out) + (j + at) * task_.out_many, task_.out_few, task_.out_many,
                         task_.few_bias, task_.many_bias == nullptr ? nullptr : task_.many_bias + j + at,
                         task_.activation});
      }
    });
  }

  const SkinnyTask& task_;
  std::int64_t few_;
  float* x_;
  float* sums_;
};

void run_skinny_here(const SkinnyTask& task) { SkinnyRunner(task).run(); }

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
namespace {
HWY_EXPORT(run_skinny_here);
}

void run_skinny(const SkinnyTask& task) { HWY_DYNAMIC_DISPATCH(run_skinny_here)(task); }

}  // namespace xpuruntime::cpu
#endif
