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

}  // namespace xpuruntime::cpu
