#pragma once

#include "backends/cpu/norm/layer_norm.h"

namespace xpuruntime::cpu {

/// What the rows are read from and written to; all of the job's dtype.
struct LayerNormGradient {
  LayerNormJob job = {};
  const void* x = nullptr;
  const void* gradient = nullptr;
  void* out = nullptr;
};

/// The gradient of x in rows [begin, end); the sums, where not null, get those rows' part of the parameters' gradients.
void layer_norm_gradient(const LayerNormGradient& to, std::int64_t begin, std::int64_t end, float* weight_sums,
                         float* bias_sums);

/// Stores the sum of `count` parts of n floats each, which lie `step` apart.
void layer_norm_add_parts(const float* parts, std::int64_t count, std::int64_t step, std::int64_t n, DataType dtype,
                          void* out);

}  // namespace xpuruntime::cpu
