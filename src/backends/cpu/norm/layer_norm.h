#pragma once

#include "backends/cpu/norm/lines.h"
#include "backends/cpu/norm/moments.h"

namespace xpuruntime::cpu {

/// The norm of dense rows, by their root mean square where it is not centred. The parameters are f32; those not given
/// are null.
struct LayerNormJob {
  DataType dtype = DataType::float32;
  bool centred = true;
  Lines lines = {};
  double eps = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;
  /// Where it is given, x + residual is stored in `sum`, and what is stored there is normalised.
  const void* residual = nullptr;
  void* sum = nullptr;
};

/// Forward, with a residual as the second input and the sum as the second output.
inline bool adds_residual(const Problem& problem) {
  return problem.direction == Direction::forward && problem.outputs.size() == 2;
}
/// Which input is the weight, if there is one; the bias comes after it.
inline std::size_t weight_of(const Problem& problem) { return adds_residual(problem) ? 2 : 1; }

/// Longer rows are cut into chunks of this length.
inline constexpr std::int64_t layer_norm_chunk = 8192;

/// Rows [begin, end) of at most layer_norm_chunk elements.
void layer_norm_rows(const LayerNormJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end);

/// The moments of n elements from `offset` on, with the residual where there is one; if not centred, about 0.
Moments layer_norm_moments(const LayerNormJob& job, const void* x, std::int64_t offset, std::int64_t n);
/// Writes the same elements, whose first is number `at` of its row, now that the moments of the row are known.
void layer_norm_write(const LayerNormJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n,
                      std::int64_t at, const Moments& row);

/// n elements of f32, f16 or bf16 as f32.
void widen_parameter(const void* from, DataType dtype, std::int64_t n, float* to);

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
