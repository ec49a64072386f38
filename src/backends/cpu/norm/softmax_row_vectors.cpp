#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/norm/softmax_row_vectors.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/norm/exponentials.h"
#include "backends/cpu/norm/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class From, class T>
void scale_row(const From* from, T* out, std::size_t n, float factor) {
  const F32Vec f = hn::Set(F32(), factor);
  for_vectors(n, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(hn::Mul(get(from + i), f), out + i); });
}

template <class T>
void write_log(const T* x, T* out, std::size_t n, float highest, float log_sum) {
  const F32Vec h = hn::Set(F32(), highest), l = hn::Set(F32(), log_sum);
  for_vectors(n, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(hn::Sub(hn::Sub(get(x + i), h), l), out + i); });
}

template <class T>
float plain_sum(const T* x, std::size_t n, float highest) {
  return sum_of_exp(x, n, shift_of(highest), [](std::size_t, F32Vec, std::size_t) HWY_ATTR {});
}

template <class T>
float sum_into(const T* x, std::size_t n, float highest, float* exps) {
  return sum_of_exp(x, n, shift_of(highest),
                    [exps](std::size_t i, F32Vec e, std::size_t count) HWY_ATTR { store_some(e, exps + i, count); });
}

/// A row of f32 keeps its exponentials in the output; narrower ones would lose bits there.
template <class T>
void softmax_row(const T* x, T* out, std::size_t n, float* buffer) {
  const float highest = highest_of(x, n);
  if constexpr (std::is_same_v<T, float>) buffer = out;
  const float sum = sum_into(x, n, highest, buffer);
  scale_row(buffer, out, n, 1 / sum);
}

template <class T>
void rows_of(const SoftmaxJob& job, const T* x, T* out, std::int64_t begin, std::int64_t end) {
  HWY_ALIGN float buffer[std::is_same_v<T, float> ? 1 : softmax_chunk];
  const auto n = static_cast<std::size_t>(job.lines.length);
  for (std::int64_t r = begin; r < end; ++r) {
    const T* row = x + r * job.lines.length;
    T* to = out + r * job.lines.length;
    if (!job.log) {
      softmax_row(row, to, n, buffer);
      continue;
    }
    const float highest = highest_of(row, n);
    write_log(row, to, n, highest, std::log(plain_sum(row, n, highest)));
  }
}

void rows_impl(const SoftmaxJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    rows_of(job, static_cast<const T*>(x), static_cast<T*>(out), begin, end);
  });
}

ChunkSum chunk_sum_impl(const SoftmaxJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n) {
  return with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const T* from = static_cast<const T*>(x) + offset;
    const auto count = static_cast<std::size_t>(n);
    const float highest = highest_of(from, count);
    if constexpr (std::is_same_v<T, float>) {
      if (!job.log) return ChunkSum{highest, sum_into(from, count, highest, static_cast<float*>(out) + offset)};
    }
    return ChunkSum{highest, plain_sum(from, count, highest)};
  });
}

/// Exponentials that could not be kept are computed again.
template <class T>
void write_again(const T* x, T* out, std::size_t n, ChunkSum row) {
  const F32Vec h = hn::Set(F32(), shift_of(row.highest)), f = hn::Set(F32(), 1 / row.sum);
  for_vectors(
      n, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(hn::Mul(vexp(hn::Sub(get(x + i), h)), f), out + i); });
}

void chunk_write_impl(const SoftmaxJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n,
                      ChunkSum chunk, ChunkSum row) {
  with_storage(job.dtype, [&](auto storage) HWY_ATTR {
    using T = decltype(storage);
    const T* from = static_cast<const T*>(x) + offset;
    T* to = static_cast<T*>(out) + offset;
    const auto count = static_cast<std::size_t>(n);
    if (job.log) return write_log(from, to, count, row.highest, std::log(row.sum));
    if constexpr (std::is_same_v<T, float>) {
      scale_row(to, to, count, std::exp(chunk.highest - shift_of(row.highest)) / row.sum);
    } else {
      write_again(from, to, count, row);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(rows_impl);
HWY_EXPORT(chunk_sum_impl);
HWY_EXPORT(chunk_write_impl);

void softmax_of_rows(const SoftmaxJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(rows_impl)(job, x, out, begin, end);
}

ChunkSum softmax_chunk_sum(const SoftmaxJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(chunk_sum_impl)(job, x, out, offset, n);
}

void softmax_chunk_write(const SoftmaxJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n,
                         ChunkSum chunk, ChunkSum row) {
  HWY_DYNAMIC_DISPATCH(chunk_write_impl)(job, x, out, offset, n, chunk, row);
}

ChunkSum combined(const ChunkSum* chunks, std::int64_t count) {
  ChunkSum row = {chunks[0].highest, 0};
  for (std::int64_t i = 1; i < count; ++i) row.highest = std::max(row.highest, chunks[i].highest);
  const double shift = std::isinf(row.highest) && row.highest < 0 ? 0 : static_cast<double>(row.highest);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(chunks[i].sum) * std::exp(static_cast<double>(chunks[i].highest) - shift);
  }
  row.sum = static_cast<float>(sum);
  return row;
}

}  // namespace xpuruntime::cpu
#endif
