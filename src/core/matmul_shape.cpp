#include "core/matmul_shape.h"

#include <cmath>
#include <utility>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {
namespace {

/// One operand as written: its last two dims, or the one of a vector.
struct Operand {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  MatrixStrides strides = {};
  std::size_t batch_rank = 0;
};

Operand matrix(const TensorSpec& spec) {
  const std::size_t rank = spec.shape.size();
  Operand operand;
  operand.rows = spec.shape[rank - 2];
  operand.columns = spec.shape[rank - 1];
  operand.strides.row = spec.strides[rank - 2];
  operand.strides.column = spec.strides[rank - 1];
  operand.batch_rank = rank - 2;
  return operand;
}

Operand row_vector(const TensorSpec& spec) {
  Operand operand;
  operand.columns = spec.shape.back();
  operand.strides.column = spec.strides.back();
  operand.strides.row = operand.columns;
  operand.batch_rank = spec.shape.size() - 1;
  return operand;
}

void transpose(Operand& operand) {
  std::swap(operand.rows, operand.columns);
  std::swap(operand.strides.row, operand.strides.column);
}

Operand read_a(const Problem& problem) {
  const TensorSpec& spec = problem.inputs[0];
  Operand a = spec.shape.size() == 1 ? row_vector(spec) : matrix(spec);
  if (problem.attributes.boolean("transpose_a")) transpose(a);
  return a;
}

Operand read_b(const Problem& problem) {
  const TensorSpec& spec = problem.inputs[1];
  Operand b = spec.shape.size() == 1 ? row_vector(spec) : matrix(spec);
  if (spec.shape.size() == 1 || problem.attributes.boolean("transpose_b")) transpose(b);
  return b;
}

/// A vector operand's dim is missing from the output.
Operand read_c(const Problem& problem) {
  const bool a_vector = problem.inputs[0].shape.size() == 1;
  const bool b_vector = problem.inputs[1].shape.size() == 1;
  const TensorSpec& spec = problem.outputs[0];
  if (!a_vector && !b_vector) return matrix(spec);
  if (a_vector && b_vector) return {};
  Operand c = row_vector(spec);
  if (b_vector) transpose(c);
  return c;
}

/// The operand's strides over the output's batch dims, counted from the right; 0 where it is broadcast.
void align_batch(Operand& operand, const TensorSpec& spec, std::size_t batch_rank) {
  const std::size_t missing = batch_rank - operand.batch_rank;
  for (std::size_t i = missing; i < batch_rank; ++i) {
    operand.strides.batch[i] = spec.shape[i - missing] == 1 ? 0 : spec.strides[i - missing];
  }
}

void append_batch_dim(MatmulShape& shape, const MatmulShape& from, int dim) {
  const std::int64_t extent = from.batch_extent[dim];
  const int last = shape.batch_dims - 1;
  MatrixStrides* const to[] = {&shape.a, &shape.b, &shape.c};
  const MatrixStrides* const source[] = {&from.a, &from.b, &from.c};
  bool joins = last >= 0;
  for (int i = 0; joins && i < 3; ++i) joins = to[i]->batch[last] == source[i]->batch[dim] * extent;
  const int slot = joins ? last : shape.batch_dims++;
  shape.batch_extent[slot] = joins ? shape.batch_extent[slot] * extent : extent;
  for (int i = 0; i < 3; ++i) to[i]->batch[slot] = source[i]->batch[dim];
}

/// Drops extents of 1 and joins dims that all three operands walk with one stride.
MatmulShape collapse(const MatmulShape& full) {
  MatmulShape shape = full;
  shape.batch_dims = 0;
  for (MatrixStrides* strides : {&shape.a, &shape.b, &shape.c}) *strides = {strides->row, strides->column, {}};
  for (std::int64_t& extent : shape.batch_extent) extent = 0;
  for (int dim = 0; dim < full.batch_dims; ++dim) {
    if (full.batch_extent[dim] != 1) append_batch_dim(shape, full, dim);
  }
  return shape;
}

/// x[..., in] and weight[out, in]: the last leading dim of x is the rows, those before it are batch dims.
MatmulShape linear_shape(const Problem& problem) {
  const TensorSpec& x = problem.inputs[0];
  const TensorSpec& weight = problem.inputs[1];
  const TensorSpec& out = problem.outputs[0];
  const std::size_t last = x.shape.size() - 1;
  MatmulShape shape;
  shape.n = weight.shape[0];
  shape.k = weight.shape[1];
  shape.a.column = x.strides[last];
  shape.b = {weight.strides[1], weight.strides[0], {}};
  shape.c.column = out.strides[last];
  shape.a.row = shape.k;
  shape.c.row = shape.n;
  if (last == 0) return shape;
  shape.m = x.shape[last - 1];
  shape.a.row = x.strides[last - 1];
  shape.c.row = out.strides[last - 1];
  for (std::size_t dim = 0; dim + 1 < last; ++dim) {
    shape.batch_extent[dim] = x.shape[dim];
    shape.batch_count *= x.shape[dim];
    shape.a.batch[dim] = x.strides[dim];
    shape.c.batch[dim] = out.strides[dim];
    shape.batch_dims = static_cast<int>(dim) + 1;
  }
  return shape;
}

/// Rows of several batches that share b are rows of one product where a and out walk them with one stride.
void fold_batch_into_rows(MatmulShape& shape) {
  while (shape.batch_dims > 0) {
    const int last = shape.batch_dims - 1;
    const std::int64_t a = shape.a.batch[last], c = shape.c.batch[last];
    if (shape.b.batch[last] != 0 && shape.batch_extent[last] != 1) return;
    if (shape.m == 1) {
      shape.a.row = a;
      shape.c.row = c;
    } else if (shape.batch_extent[last] != 1 && (a != shape.m * shape.a.row || c != shape.m * shape.c.row)) {
      return;
    }
    shape.m *= shape.batch_extent[last];
    shape.batch_dims = last;
  }
}

}  // namespace

MatmulShape matmul_shape(const Problem& problem) {
  Operand a = read_a(problem);
  Operand b = read_b(problem);
  Operand c = read_c(problem);
  MatmulShape shape;
  shape.m = a.rows;
  shape.n = b.columns;
  shape.k = a.columns;
  shape.batch_dims = static_cast<int>(c.batch_rank);
  for (std::size_t i = 0; i < c.batch_rank; ++i) {
    shape.batch_extent[i] = problem.outputs[0].shape[i];
    shape.batch_count *= shape.batch_extent[i];
  }
  align_batch(a, problem.inputs[0], c.batch_rank);
  align_batch(b, problem.inputs[1], c.batch_rank);
  align_batch(c, problem.outputs[0], c.batch_rank);
  shape.a = a.strides;
  shape.b = b.strides;
  shape.c = c.strides;
  return collapse(shape);
}

MatmulShape product_shape(const Problem& problem) {
  MatmulShape shape = problem.op == OpId::linear ? linear_shape(problem) : matmul_shape(problem);
  fold_batch_into_rows(shape);
  shape.batch_count = 1;
  for (int dim = 0; dim < shape.batch_dims; ++dim) shape.batch_count *= shape.batch_extent[dim];
  return shape;
}

bool has_float_scalars(const Problem& problem) {
  if (problem.op != OpId::matmul) return true;
  for (const char* name : {"alpha", "beta"}) {
    const double value = problem.attributes.real(name);
    if (value != 0 && !std::isnormal(static_cast<float>(value))) return false;
  }
  return true;
}

std::int64_t batch_offset(const MatmulShape& shape, const MatrixStrides& strides, std::int64_t batch) {
  std::int64_t offset = 0;
  for (int dim = shape.batch_dims - 1; dim >= 0; --dim) {
    offset += batch % shape.batch_extent[dim] * strides.batch[dim];
    batch /= shape.batch_extent[dim];
  }
  return offset;
}

}  // namespace xpuruntime
