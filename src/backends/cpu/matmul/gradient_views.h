#pragma once

#include "backends/cpu/base/stages.h"

// The operands of matmul and linear as matrices in whole: batch dims, then rows and columns. Vectors have an extent of
// 1 more, and transposes are strides.

namespace xpuruntime::cpu {

struct GradientViews {
  StageTensor a, b, gradient;
  // Of the operands that have one.
  bool has_da = false, has_db = false;
  StageTensor da, db;
};

GradientViews gradient_views(const Problem& backward);

/// The last two dims swapped.
StageTensor transposed(const StageTensor& matrix);

/// With extents of 1 in front, up to this rank.
StageTensor padded_to(const StageTensor& matrix, std::size_t rank);

/// How a summed batch dim joins the summed extent of a product: out = sum over r and k of a[r,m,k] b[r,k,n]. False, and
/// nothing done, where one stride cannot walk both dims.
bool join_summed(StageTensor& a, StageTensor& b, std::size_t dim);

}  // namespace xpuruntime::cpu
