#pragma once

#include <cstdint>

#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// Strides of one operand of a product, in elements: from row to row, column to column, and over the batch dimensions.
struct MatrixStrides {
  std::int64_t row = 0;
  std::int64_t column = 0;
  Dims batch = {};  // 0 where it is broadcast
};

/// A matmul problem with 1-D operands, transposes and broadcasting resolved: out[b,i,j] = sum over p of a[b,i,p]
/// b[b,p,j].
struct MatmulView {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  Dims batch_shape = {};
  std::int64_t batches = 1;
  MatrixStrides a = {};
  MatrixStrides b = {};
  MatrixStrides out = {};

  explicit MatmulView(const Problem& problem);

  struct Offsets {
    std::int64_t a = 0;
    std::int64_t b = 0;
    std::int64_t out = 0;
  };
  /// Where the matrices of one batch entry begin.
  Offsets offsets(std::int64_t batch) const;
};

}  // namespace xpuruntime::cpu
