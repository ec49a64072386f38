#pragma once

#include <cstdint>
#include <string_view>

namespace xpuruntime {

struct Problem;

inline constexpr int max_batch_dims = 6;

/// What kernels of products take of matmul's opt-in inputs and attributes (KernelSpec::takes), where they take all.
inline constexpr std::string_view affine_names = "alpha|beta|c|scale_a|scale_b";

/// How one operand is walked, in elements. An extent that is broadcast has stride 0.
struct MatrixStrides {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t batch[max_batch_dims] = {};
};

/// c[m,n] = sum over k of a[m,k] * b[k,n], for each batch index. Transposes, vectors and broadcasting have become
/// strides, and batch dims that one stride can walk are one. Plain data: it is also a kernel parameter.
struct MatmulShape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  int batch_dims = 0;
  std::int64_t batch_extent[max_batch_dims] = {};
  std::int64_t batch_count = 1;
  MatrixStrides a = {};
  MatrixStrides b = {};
  MatrixStrides c = {};
};

MatmulShape matmul_shape(const Problem& problem);

/// The same for matmul and linear alike; batch dims that only a and c walk have become rows.
MatmulShape product_shape(const Problem& problem);

/// Whether alpha and beta, where the op has them, keep their digits in float32: it is neither too large nor too small.
bool has_float_scalars(const Problem& problem);

/// Where the operand's matrix of one batch index begins, in elements.
std::int64_t batch_offset(const MatmulShape& shape, const MatrixStrides& strides, std::int64_t batch);

}  // namespace xpuruntime
