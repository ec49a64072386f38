#pragma once

#include "backends/cpu/base/nest.h"

namespace xpuruntime::cpu {

/// Calls `body` with an unsigned value of so many bytes: 1, 2, 4 or 8.
template <class Body>
void with_size(std::int64_t size, const Body& body) {
  if (size == 1) return body(std::uint8_t{});
  if (size == 2) return body(std::uint16_t{});
  return size == 4 ? body(std::uint32_t{}) : body(std::uint64_t{});
}

/// Copies the elements of one tensor into another of the same shape and element size, whatever their strides: rows that
/// lie in line in both at once, those that lie across in tiles, the rest one by one.
class StridedCopy {
 public:
  StridedCopy(const TensorSpec& from, const TensorSpec& to);
  void run(const void* in, void* out, int threads) const;

 private:
  void copy_rows(const char* in, char* out, int threads) const;
  void copy_tiles(const char* in, char* out, int threads) const;
  void copy_elements(const char* in, char* out, int threads) const;

  Nest<2> nest_;
  std::int64_t size_;       // of an element, in bytes
  std::size_t across_ = 0;  // the dim along which the input lies in line while the output does along dim 0
};

/// A matrix whose rows are in line in the input and whose columns are in line in the output. Strides in elements.
struct Panel {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t in_stride = 0;   // from row to row
  std::int64_t out_stride = 0;  // from column to column
};

/// Transposes it with the vectors of this CPU. `size` is 1, 2, 4 or 8.
void transpose_panel(const Panel& panel, std::int64_t size, const void* in, void* out);

/// How many elements fill a line of memory.
constexpr std::int64_t panel_line(std::int64_t size) { return 64 / size; }

}  // namespace xpuruntime::cpu
