#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/movement/transpose_vectors.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "backends/cpu/movement/strided.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The longer loop inside.
template <class T>
void transpose_elements(const Panel& panel, const T* in, T* out) {
  if (panel.rows < panel.columns) {
    for (std::int64_t i = 0; i < panel.rows; ++i) {
      for (std::int64_t j = 0; j < panel.columns; ++j) out[j * panel.out_stride + i] = in[i * panel.in_stride + j];
    }
    return;
  }
  for (std::int64_t j = 0; j < panel.columns; ++j) {
    for (std::int64_t i = 0; i < panel.rows; ++i) out[j * panel.out_stride + i] = in[i * panel.in_stride + j];
  }
}

#if HWY_TARGET == HWY_SCALAR

template <class T>
void transpose_as(const Panel& panel, const T* in, T* out) {
  transpose_elements(panel, in, out);
}

#else

/// A square of vectors of 16 bytes.
template <class T>
struct Square {
  static constexpr std::size_t n = 16 / sizeof(T);
  using D = hn::FixedTag<T, n>;
  using Vec = hn::Vec<D>;

  // As many interleavings of both halves as the length has bits turn it round. All indices are constants, so that the
  // vectors stay in registers.
  template <std::size_t step, std::size_t... i>
  static HWY_INLINE void turn(Vec* v, std::index_sequence<i...> halves) {
    if constexpr (step < n) {
      Vec w[n];
      ((w[2 * i] = hn::InterleaveLower(D(), v[i], v[i + n / 2]),
        w[2 * i + 1] = hn::InterleaveUpper(D(), v[i], v[i + n / 2])),
       ...);
      ((v[2 * i] = w[2 * i], v[2 * i + 1] = w[2 * i + 1]), ...);
      turn<2 * step>(v, halves);
    }
  }

  template <std::size_t... i>
  static HWY_INLINE void run(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride,
                             std::index_sequence<i...>) {
    Vec v[n] = {hn::LoadU(D(), in + static_cast<std::int64_t>(i) * in_stride)...};
    turn<1>(v, std::make_index_sequence<n / 2>());
    (hn::StoreU(v[i], D(), out + static_cast<std::int64_t>(i) * out_stride), ...);
  }
};

template <class T>
HWY_INLINE void transpose_square(const T* in, std::int64_t in_stride, T* out, std::int64_t out_stride) {
  Square<T>::run(in, in_stride, out, out_stride, std::make_index_sequence<Square<T>::n>());
}

/// The ends as they are, and between them whole lines of the output: a store that lies across two of them takes several
/// times as long.
HWY_INLINE void copy_by_lines(const char* from, char* to, std::size_t bytes) {
  const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  if (head != 0) std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + 64 <= bytes; at += 64) std::memcpy(to + at, from + at, 64);
  if (at != bytes) std::memcpy(to + at, from + at, bytes - at);
}

/// Lines of rows that are turned together.
constexpr std::int64_t lines_at_once = 8;

/// Columns of one line, of so many rows, through a buffer: each line of the output is written once or twice, however
/// its rows lie in the cache. `next` is as far as the input goes on behind the rows.
template <class T>
void transpose_lines(const Panel& panel, std::int64_t rows, std::int64_t next, const T* in, T* out) {
  constexpr std::int64_t line = panel_line(sizeof(T)), n = Square<T>::n, most = lines_at_once * line;
  alignas(64) T buffer[line * most];
  // The rows lie too far apart for the processor to foresee the next ones.
  for (std::int64_t i = 0; i < next; ++i) hwy::Prefetch(in + (rows + i) * panel.in_stride);
  for (std::int64_t i = 0; i < rows; i += n) {
    for (std::int64_t j = 0; j < line; j += n) {
      transpose_square(in + i * panel.in_stride + j, panel.in_stride, buffer + j * most + i, most);
    }
  }
  const std::size_t bytes = static_cast<std::size_t>(rows) * sizeof(T);
  for (std::int64_t j = 0; j < line; ++j) {
    copy_by_lines(reinterpret_cast<const char*>(buffer + j * most), reinterpret_cast<char*>(out + j * panel.out_stride),
                  bytes);
  }
}

/// What is left of a panel in small squares, and then one by one.
template <class T>
void transpose_rest(const Panel& panel, const T* in, T* out) {
  constexpr std::int64_t n = Square<T>::n;
  const std::int64_t rows = panel.rows / n * n, columns = panel.columns / n * n;
  for (std::int64_t i = 0; i < rows; i += n) {
    for (std::int64_t j = 0; j < columns; j += n) {
      transpose_square(in + i * panel.in_stride + j, panel.in_stride, out + j * panel.out_stride + i, panel.out_stride);
    }
  }
  transpose_elements({rows, panel.columns - columns, panel.in_stride, panel.out_stride}, in + columns,
                     out + columns * panel.out_stride);
  transpose_elements({panel.rows - rows, panel.columns, panel.in_stride, panel.out_stride}, in + rows * panel.in_stride,
                     out + rows);
}

template <class T>
void transpose_as(const Panel& panel, const T* in, T* out) {
  constexpr std::int64_t line = panel_line(sizeof(T));
  const std::int64_t rows = panel.rows / line * line, columns = panel.columns / line * line;
  constexpr std::int64_t most = lines_at_once * line;
  for (std::int64_t i = 0; i < rows; i += most) {
    const std::int64_t count = std::min(most, rows - i), next = std::min(most, rows - i - count);
    for (std::int64_t j = 0; j < columns; j += line) {
      transpose_lines(panel, count, next, in + i * panel.in_stride + j, out + j * panel.out_stride + i);
    }
  }
  transpose_rest({rows, panel.columns - columns, panel.in_stride, panel.out_stride}, in + columns,
                 out + columns * panel.out_stride);
  transpose_rest({panel.rows - rows, panel.columns, panel.in_stride, panel.out_stride}, in + rows * panel.in_stride,
                 out + rows);
}

#endif

}  // namespace

void transpose_panel_of(const Panel& panel, std::int64_t size, const void* in, void* out) {
  if (size == 1) return transpose_as(panel, static_cast<const std::uint8_t*>(in), static_cast<std::uint8_t*>(out));
  if (size == 2) return transpose_as(panel, static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(out));
  if (size == 4) return transpose_as(panel, static_cast<const std::uint32_t*>(in), static_cast<std::uint32_t*>(out));
  transpose_as(panel, static_cast<const std::uint64_t*>(in), static_cast<std::uint64_t*>(out));
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(transpose_panel_of);

void transpose_panel(const Panel& panel, std::int64_t size, const void* in, void* out) {
  HWY_DYNAMIC_DISPATCH(transpose_panel_of)(panel, size, in, out);
}

}  // namespace xpuruntime::cpu
#endif
