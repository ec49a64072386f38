#pragma once

#include <cstddef>
#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::cpu {

/// A matrix of f32 somewhere in memory: element (i, j) is at data[i * row + j * column].
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

/// The same in f32, f16 or bf16.
struct TypedMatrixView {
  const void* data = nullptr;
  DataType dtype = DataType::float32;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

/// c[m,n] = a[m,k] b[k,n] on the calling thread; `accumulate` adds to c instead. Rows of c are `c_row` apart.
/// `scratch` has gemm_scratch_bytes(m, n, k) bytes, 64-byte aligned. An element's sum runs over k in an order that
/// depends on nothing but k.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float* c, std::int64_t c_row,
          bool accumulate, void* scratch);
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const TypedMatrixView& a, const TypedMatrixView& b, float* c,
          std::int64_t c_row, bool accumulate, void* scratch);
std::size_t gemm_scratch_bytes(std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace xpuruntime::cpu
