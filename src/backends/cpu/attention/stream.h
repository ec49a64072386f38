#pragma once

#include <cstdint>

#include "backends/cpu/base/storage.h"

// Products of a few rows with many keys or values, each of which is read from memory once. Bound by memory: nothing is
// packed.

namespace xpuruntime::cpu {

inline constexpr std::int64_t stream_rows = 4;  // rows that share one pass

/// Keys or values: `count` rows of `width` elements, one after the other or on pages.
struct StreamedRows {
  const void* data = nullptr;
  DataType dtype = DataType::float32;
  std::int64_t row = 0;
  std::int64_t count = 0;
  std::int64_t width = 0;
  // Where they lie on pages: `data` is page 0, and the rows begin with row `first` of the table's pages.
  const std::int32_t* pages = nullptr;
  std::int64_t page_step = 1;    // from one number in the table to the next
  std::int64_t page_stride = 0;  // from one page to the next, in elements
  std::int64_t page_size = 1;    // rows on a page
  std::int64_t first = 0;
};

/// results[r * result_row + j] = queries[r] . keys[j]; queries are `keys.width` floats each, one after the other.
void stream_dots(const float* queries, std::int64_t rows, const StreamedRows& keys, float* results,
                 std::int64_t result_row);

/// sums[r * sum_row + c] = the sum over j of weights[r * weight_row + j] values[j][c], first j to last.
void stream_sums(const float* weights, std::int64_t weight_row, std::int64_t rows, const StreamedRows& values,
                 float* sums, std::int64_t sum_row);

}  // namespace xpuruntime::cpu
