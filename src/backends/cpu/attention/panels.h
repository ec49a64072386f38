#pragma once

#include <cstdint>

#include "backends/cpu/base/storage.h"

// Products of f32 with a right operand that was packed before: one packing serves many rows. gemm() packs anew in each
// call, which for the small products of attention costs as much as the product.
//
// The right operand b[k, n] lies in panels, k rows of as many columns as two vectors hold; columns past n are zeros.

namespace xpuruntime::cpu {

/// Packed operands and the rows of products have a multiple of this many columns, whatever the size of a vector.
inline constexpr std::int64_t panel_align = 32;

constexpr std::int64_t panel_columns(std::int64_t n) { return (n + panel_align - 1) / panel_align * panel_align; }
constexpr std::int64_t panel_elements(std::int64_t k, std::int64_t n) { return k * panel_columns(n); }

/// Packs b[k, n] whose element (i, j) is at b[i * row + j], widened to f32.
void pack_panel_rows(const void* b, DataType dtype, std::int64_t row, std::int64_t k, std::int64_t n, float* packed);

/// Packs b[k, n] whose element (i, j) is at b[j * column + i], widened to f32.
void pack_panel_columns(const void* b, DataType dtype, std::int64_t column, std::int64_t k, std::int64_t n,
                        float* packed);

struct PanelProduct {
  const float* a = nullptr;
  std::int64_t a_row = 0;
  const float* b = nullptr;
  std::int64_t b_rows = 0;  // k of the packing; the sum goes over the first `depth` of them
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // a multiple of panel_align
  std::int64_t depth = 0;
  bool accumulate = false;  // adds to c instead of setting it
};

/// Each element is one chain of multiply-adds, from zero, over the first to the last of `depth`.
void multiply_panels(const PanelProduct& product);

}  // namespace xpuruntime::cpu
