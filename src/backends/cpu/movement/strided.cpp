#include "backends/cpu/movement/strided.h"

#include <cstring>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {
namespace {

// Fewest bytes worth a thread of their own.
constexpr std::int64_t grain_bytes = 65536;

/// Columns of a panel: whole lines, more where there are few rows, so that a panel is some ten kilobytes.
std::int64_t panel_columns(std::int64_t rows, std::int64_t size) {
  constexpr std::int64_t panel_bytes = 32768, most_lines = 16;
  return std::clamp(panel_bytes / (rows * 64), std::int64_t{4}, most_lines) * panel_line(size);
}

/// Every second element of four bytes, a vector at a time. Returns how many: behind the last there may be no memory, so
/// some are left.
std::int64_t copy_every_second(const char* from, char* to, std::int64_t n) {
  typedef std::uint32_t Vector __attribute__((vector_size(16)));
  std::int64_t j = 0;
  for (; j + 5 <= n; j += 4) {
    Vector a, b;
    std::memcpy(&a, from + 8 * j, sizeof a);
    std::memcpy(&b, from + 8 * j + 16, sizeof b);
    const Vector even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    std::memcpy(to + 4 * j, &even, sizeof even);
  }
  return j;
}

/// One element n times.
template <std::int64_t size>
void fill(const char* from, char* to, std::int64_t n) {
  constexpr std::int64_t each = 64 / size;
  char line[64];
  for (std::int64_t j = 0; j < each; ++j) std::memcpy(line + j * size, from, size);
  for (; n >= each; n -= each, to += sizeof line) std::memcpy(to, line, sizeof line);
  std::memcpy(to, line, static_cast<std::size_t>(n * size));
}

/// Each of n elements so many times, side by side.
template <class T, std::int64_t times>
void repeat(const char* from, std::int64_t in_step, char* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i, from += in_step, to += times * static_cast<std::int64_t>(sizeof(T))) {
    T element;
    std::memcpy(&element, from, sizeof(T));
    for (std::int64_t j = 0; j < times; ++j)
      std::memcpy(to + j * static_cast<std::int64_t>(sizeof(T)), &element, sizeof(T));
  }
}

/// Null: so many are for `fill`.
template <class T>
auto repeat_of(std::int64_t times) {
  return times == 2 ? repeat<T, 2> : times == 3 ? repeat<T, 3> : times == 4 ? repeat<T, 4> : nullptr;
}

/// The dim other than 0 along which the input lies in line; 0 if there is none.
std::size_t dim_in_line(const Nest<2>& nest) {
  for (std::size_t dim = 1; dim < nest.rank(); ++dim) {
    if (nest.stride(0, dim) == 1 && nest.extent(dim) > 1) return dim;
  }
  return 0;
}

}  // namespace

StridedCopy::StridedCopy(const TensorSpec& from, const TensorSpec& to)
    : nest_(to.shape, {&from, &to}, NestOrder::by_last_operand), size_(static_cast<std::int64_t>(size_of(to.dtype))) {
  // Tiles are read by elements, which must lie as elements do; bytes lie anyhow.
  const bool aligned = std::min(from.alignment, to.alignment) >= size_of(to.dtype);
  if (nest_.stride(1, 0) == 1 && nest_.stride(0, 0) != 0 && aligned) across_ = dim_in_line(nest_);
}

void StridedCopy::run(const void* in, void* out, int threads) const {
  if (nest_.count() == 0) return;
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(out);
  if (nest_.inner_is(0, 1) && nest_.inner_is(1, 1)) return copy_rows(from, to, threads);
  across_ != 0 ? copy_tiles(from, to, threads) : copy_elements(from, to, threads);
}

void StridedCopy::copy_rows(const char* in, char* out, int threads) const {
  parallel_for(nest_.count(), grain_bytes / size_, threads, [&](std::int64_t begin, std::int64_t end) {
    nest_.for_blocks(begin, end, [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
      const char* from = in + offsets[0] * size_;
      char* to = out + offsets[1] * size_;
      for (; rows > 0; --rows, from += nest_.stride(0, 1) * size_, to += nest_.stride(1, 1) * size_) {
        std::memcpy(to, from, static_cast<std::size_t>(columns * size_));
      }
    });
  });
}

void StridedCopy::copy_tiles(const char* in, char* out, int threads) const {
  const std::int64_t height = nest_.extent(0), width = nest_.extent(across_), step = panel_columns(height, size_);
  const std::int64_t panels = (width + step - 1) / step, matrices = nest_.count() / (height * width);
  const std::int64_t grain = 2 * grain_bytes / (height * step * size_) + 1;
  parallel_for(matrices * panels, grain, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % panels * step;
      std::int64_t from = column * nest_.stride(0, across_), to = column * nest_.stride(1, across_);
      std::int64_t matrix = i / panels;
      for (std::size_t dim = 1; dim < nest_.rank(); ++dim) {
        if (dim == across_) continue;
        from += matrix % nest_.extent(dim) * nest_.stride(0, dim);
        to += matrix % nest_.extent(dim) * nest_.stride(1, dim);
        matrix /= nest_.extent(dim);
      }
      transpose_panel({height, std::min(step, width - column), nest_.stride(0, 0), nest_.stride(1, across_)}, size_,
                      in + from * size_, out + to * size_);
    }
  });
}

void StridedCopy::copy_elements(const char* in, char* out, int threads) const {
  with_size(size_, [&](auto type) {
    using T = decltype(type);
    constexpr std::int64_t size = sizeof(T);
    const std::int64_t in_step = nest_.stride(0, 0) * size, out_step = nest_.stride(1, 0) * size;
    const bool repeats = in_step == 0 && out_step == size && nest_.stride(1, 1) == nest_.extent(0);
    const auto repeat_some = repeats ? repeat_of<T>(nest_.extent(0)) : nullptr;
    parallel_for(nest_.count(), grain_bytes / size_ / 2, threads, [&](std::int64_t begin, std::int64_t end) {
      nest_.for_blocks(begin, end, [&](const auto& offsets, std::int64_t rows, std::int64_t columns, std::int64_t) {
        const char* from = in + offsets[0] * size;
        char* to = out + offsets[1] * size;
        if (repeat_some != nullptr && columns == nest_.extent(0)) {
          return repeat_some(from, nest_.stride(0, 1) * size, to, rows);
        }
        for (; rows > 0; --rows, from += nest_.stride(0, 1) * size, to += nest_.stride(1, 1) * size) {
          if (in_step == 0 && out_step == size) {
            fill<size>(from, to, columns);
            continue;
          }
          const bool every_second = size == 4 && in_step == 8 && out_step == 4;
          std::int64_t j = every_second ? copy_every_second(from, to, columns) : 0;
          // A constant size: one instruction each, whatever the alignment.
          for (; j < columns; ++j) std::memcpy(to + j * out_step, from + j * in_step, sizeof(T));
        }
      });
    });
  });
}

}  // namespace xpuruntime::cpu
