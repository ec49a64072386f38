#include "backends/cpu/attention/stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/stream_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// n sums of products of a vector that they share with one of their own. A chain of structs instead of an array: every
/// vector is sure to be a register.
template <int n>
struct Dots {
  F32Vec sum;
  Dots<n - 1> rest;

  // Written out: a constructor that the compiler makes is not compiled for the target.
  HWY_INLINE Dots() {}
  HWY_INLINE void zero() {
    sum = hn::Zero(F32());
    rest.zero();
  }
  template <class T, class Load>
  HWY_INLINE void add(F32Vec shared, const T* own, std::int64_t row, const Load& get) {
    sum = hn::MulAdd(shared, get(own), sum);
    rest.add(shared, own + row, row, get);
  }
  HWY_INLINE void store_to(float* to, std::int64_t step) const {
    *to = hn::GetLane(hn::SumOfLanes(F32(), sum));
    rest.store_to(to + step, step);
  }
};

template <>
struct Dots<0> {
  HWY_INLINE void zero() {}
  template <class T, class Load>
  HWY_INLINE void add(F32Vec, const T*, std::int64_t, const Load&) {}
  HWY_INLINE void store_to(float*, std::int64_t) const {}
};

/// to[i * step] = shared . own[i] for i < n.
template <int n, class Shared, class Own>
HWY_INLINE void dots(const Shared* shared, const Own* own, std::int64_t own_row, std::int64_t width, float* to,
                     std::int64_t step) {
  Dots<n> sums;
  sums.zero();
  for_vectors(static_cast<std::size_t>(width),
              [&](std::size_t i, auto get, auto) HWY_ATTR { sums.add(get(shared + i), own + i, own_row, get); });
  sums.store_to(to, step);
}

/// Calls use(rows, first, count) for each run of rows that lie one behind the other. The call stands there once, so
/// that it is inlined and what it adds to stays in registers.
template <class T, class Use>
HWY_INLINE void each_run(const StreamedRows& shape, const T* data, const Use& use) {
  for (std::int64_t done = 0; done < shape.count;) {
    const T* run = data;
    std::int64_t count = shape.count;
    if (shape.pages != nullptr) {
      const std::int64_t row = shape.first + done, within = row % shape.page_size;
      run += shape.pages[row / shape.page_size * shape.page_step] * shape.page_stride + within * shape.row;
      count = std::min(shape.page_size - within, shape.count - done);
    }
    use(run, done, count);
    done += count;
  }
}

/// One row goes over four keys at a time, several rows over one key at a time: four sums either way.
template <class T>
HWY_INLINE void dots_typed(const float* queries, std::int64_t rows, const T* keys, const StreamedRows& shape,
                           float* results, std::int64_t result_row) {
  const std::int64_t width = shape.width;
  std::int64_t j = 0;
  if (rows == 1) {
    for (; j + 4 <= shape.count; j += 4) dots<4>(queries, keys + j * shape.row, shape.row, width, results + j, 1);
    for (; j < shape.count; ++j) dots<1>(queries, keys + j * shape.row, shape.row, width, results + j, 1);
    return;
  }
  for (; j < shape.count; ++j) {
    const T* key = keys + j * shape.row;
    if (rows == 2) dots<2>(key, queries, width, width, results + j, result_row);
    if (rows == 3) dots<3>(key, queries, width, width, results + j, result_row);
    if (rows == 4) dots<4>(key, queries, width, width, results + j, result_row);
  }
}

/// n vectors of a row.
template <int n>
struct Line {
  F32Vec first;
  Line<n - 1> rest;

  HWY_INLINE Line() {}
  HWY_INLINE void zero() {
    first = hn::Zero(F32());
    rest.zero();
  }
  template <class T>
  HWY_INLINE void load_from(const T* from) {
    first = load(from);
    rest.load_from(from + f32_lanes());
  }
  HWY_INLINE void add(F32Vec factor, const Line& values) {
    first = hn::MulAdd(factor, values.first, first);
    rest.add(factor, values.rest);
  }
  HWY_INLINE void store_to(float* to) const {
    store(first, to);
    rest.store_to(to + f32_lanes());
  }
};

template <>
struct Line<0> {
  HWY_INLINE void zero() {}
  template <class T>
  HWY_INLINE void load_from(const T*) {}
  HWY_INLINE void add(F32Vec, const Line&) {}
  HWY_INLINE void store_to(float*) const {}
};

/// Sums of several rows over the same columns.
template <int rows, int vectors>
struct Strip {
  Line<vectors> line;
  Strip<rows - 1, vectors> rest;

  HWY_INLINE Strip() {}
  HWY_INLINE void zero() {
    line.zero();
    rest.zero();
  }
  HWY_INLINE void add(const float* weight, std::int64_t weight_row, const Line<vectors>& values) {
    line.add(hn::Set(F32(), *weight), values);
    rest.add(weight + weight_row, weight_row, values);
  }
  HWY_INLINE void store_to(float* sums, std::int64_t sum_row) const {
    line.store_to(sums);
    rest.store_to(sums + sum_row, sum_row);
  }
  HWY_INLINE void store_first_to(float* sums, std::int64_t sum_row, std::size_t n) const {
    store_first(line.first, sums, n);
    rest.store_first_to(sums + sum_row, sum_row, n);
  }
};

template <int vectors>
struct Strip<0, vectors> {
  HWY_INLINE void zero() {}
  HWY_INLINE void add(const float*, std::int64_t, const Line<vectors>&) {}
  HWY_INLINE void store_to(float*, std::int64_t) const {}
  HWY_INLINE void store_first_to(float*, std::int64_t, std::size_t) const {}
};

struct Weights {
  const float* data;
  std::int64_t row;
};

template <int rows, int vectors, class T>
HWY_INLINE void sum_strip(Weights weights, const T* values, const StreamedRows& shape, float* sums,
                          std::int64_t sum_row) {
  Strip<rows, vectors> strip;
  strip.zero();
  each_run(shape, values, [&](const T* run, std::int64_t first, std::int64_t count) HWY_ATTR {
    for (std::int64_t j = 0; j < count; ++j) {
      Line<vectors> line;
      line.load_from(run + j * shape.row);
      strip.add(weights.data + first + j, weights.row, line);
    }
  });
  strip.store_to(sums, sum_row);
}

/// The last columns, fewer than a vector.
template <int rows, class T>
HWY_INLINE void sum_tail(Weights weights, const T* values, const StreamedRows& shape, float* sums, std::int64_t sum_row,
                         std::size_t left) {
  Strip<rows, 1> strip;
  strip.zero();
  each_run(shape, values, [&](const T* run, std::int64_t first, std::int64_t count) HWY_ATTR {
    for (std::int64_t j = 0; j < count; ++j) {
      Line<1> line;
      line.first = load_first(run + j * shape.row, left);
      strip.add(weights.data + first + j, weights.row, line);
    }
  });
  strip.store_first_to(sums, sum_row, left);
}

template <int rows, class T>
HWY_INLINE void sum_rows(Weights weights, const T* values, const StreamedRows& shape, float* sums,
                         std::int64_t sum_row) {
  // Wide strips read memory in longer runs; more rows leave registers for fewer columns.
  constexpr int vectors = rows == 1 ? 8 : 4;
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  std::int64_t c = 0;
  for (; c + vectors * lanes <= shape.width; c += vectors * lanes) {
    sum_strip<rows, vectors>(weights, values + c, shape, sums + c, sum_row);
  }
  for (; c + lanes <= shape.width; c += lanes) sum_strip<rows, 1>(weights, values + c, shape, sums + c, sum_row);
  if (c < shape.width) {
    sum_tail<rows>(weights, values + c, shape, sums + c, sum_row, static_cast<std::size_t>(shape.width - c));
  }
}

void all_dots(const float* queries, std::int64_t rows, const StreamedRows& keys, float* results,
              std::int64_t result_row) {
  with_storage(keys.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    each_run(keys, static_cast<const T*>(keys.data), [&](const T* run, std::int64_t first, std::int64_t n) HWY_ATTR {
      StreamedRows part = keys;
      part.count = n;
      dots_typed(queries, rows, run, part, results + first, result_row);
    });
  });
}

void all_sums(const float* weights, std::int64_t weight_row, std::int64_t rows, const StreamedRows& values, float* sums,
              std::int64_t sum_row) {
  with_storage(values.dtype, [&](auto type) HWY_ATTR {
    const auto* data = static_cast<const decltype(type)*>(values.data);
    const Weights from = {weights, weight_row};
    if (rows == 1) sum_rows<1>(from, data, values, sums, sum_row);
    if (rows == 2) sum_rows<2>(from, data, values, sums, sum_row);
    if (rows == 3) sum_rows<3>(from, data, values, sums, sum_row);
    if (rows == 4) sum_rows<4>(from, data, values, sums, sum_row);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
HWY_EXPORT(all_dots);
HWY_EXPORT(all_sums);

void stream_dots(const float* queries, std::int64_t rows, const StreamedRows& keys, float* results,
                 std::int64_t result_row) {
  HWY_DYNAMIC_DISPATCH(all_dots)(queries, rows, keys, results, result_row);
}

void stream_sums(const float* weights, std::int64_t weight_row, std::int64_t rows, const StreamedRows& values,
                 float* sums, std::int64_t sum_row) {
  HWY_DYNAMIC_DISPATCH(all_sums)(weights, weight_row, rows, values, sums, sum_row);
}

}  // namespace xpuruntime::cpu
#endif
