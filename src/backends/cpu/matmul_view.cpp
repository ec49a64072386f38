#include "backends/cpu/matmul_view.h"

#include <utility>

namespace xpuruntime::cpu {
namespace {

// Strides of the batch dimensions, aligned on the right; extents of 1 are broadcast.
Dims batch_strides(const TensorSpec& spec, std::size_t matrix_rank, const Dims& batch_shape) {
  Dims strides = Dims::filled(batch_shape.size(), 0);
  const std::size_t own = spec.shape.size() - matrix_rank;
  for (std::size_t i = 0; i < own; ++i) {
    strides[batch_shape.size() - own + i] = spec.shape[i] == 1 ? 0 : spec.strides[i];
  }
  return strides;
}

std::int64_t last(const Dims& dims, std::size_t back) { return dims[dims.size() - 1 - back]; }

}  // namespace

MatmulView::MatmulView(const Problem& problem) {
  const TensorSpec& left = problem.inputs[0];
  const TensorSpec& right = problem.inputs[1];
  const TensorSpec& result = problem.outputs[0];
  const bool left_vector = left.shape.size() == 1;
  const bool right_vector = right.shape.size() == 1;

  std::size_t result_rank = 2;  // how many of the result's dimensions are the matrix's own
  if (left_vector) --result_rank;
  if (right_vector) --result_rank;
  batch_shape = Dims(std::span(result.shape.begin(), result.shape.size() - result_rank));
  for (const std::int64_t extent : batch_shape) batches *= extent;

  // A vector on the left is a row, on the right a column; the transpose flags speak of matrices only.
  k = last(left.shape, 0);
  if (left_vector) {
    a.column = left.strides[0];
  } else {
    m = last(left.shape, 1);
    a.row = last(left.strides, 1);
    a.column = last(left.strides, 0);
    if (problem.attributes.boolean("transpose_a")) {
      std::swap(m, k);
      std::swap(a.row, a.column);
    }
  }
  if (right_vector) {
    b.row = right.strides[0];
  } else {
    n = last(right.shape, 0);
    b.row = last(right.strides, 1);
    b.column = last(right.strides, 0);
    if (problem.attributes.boolean("transpose_b")) {
      n = last(right.shape, 1);
      std::swap(b.row, b.column);
    }
  }
  if (!right_vector) out.column = last(result.strides, 0);
  if (!left_vector) out.row = last(result.strides, right_vector ? 0 : 1);

  a.batch = batch_strides(left, left_vector ? 1 : 2, batch_shape);
  b.batch = batch_strides(right, right_vector ? 1 : 2, batch_shape);
  out.batch = batch_strides(result, result_rank, batch_shape);
}

MatmulView::Offsets MatmulView::offsets(std::int64_t batch) const {
  Offsets at;
  for (std::size_t i = batch_shape.size(); i-- > 0;) {
    const std::int64_t position = batch % batch_shape[i];
    batch /= batch_shape[i];
    at.a += position * a.batch[i];
    at.b += position * b.batch[i];
    at.out += position * out.batch[i];
  }
  return at;
}

}  // namespace xpuruntime::cpu
