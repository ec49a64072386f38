#pragma once

#include <cstdint>

#include "backends/cpu/base/activation.h"
#include "backends/cpu/base/storage.h"

namespace xpuruntime::cpu {

/// What a library leaves to us: activation(out + bias) in place, on rows that are `out_row` apart. The bias may be
/// null.
void finish_rows(float* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                 Activation activation);
void finish_rows(Bfloat* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                 Activation activation);

/// A row of sums on their way to the output.
struct ScaledSums {
  const float* sums = nullptr;
  const float* factors = nullptr;
  const float* added = nullptr;
  float beta = 1;
  std::int64_t count = 0;
};

/// out[i] = sums[i] * factors[i] + beta * added[i], in f32 and then rounded to `dtype`.
void scale_and_add(const ScaledSums& row, void* out, DataType dtype);

}  // namespace xpuruntime::cpu
