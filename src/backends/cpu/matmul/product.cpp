#include "backends/cpu/matmul/product.h"

#include <algorithm>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {
namespace {

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

std::int64_t batches(const MatmulShape& shape) {
  std::int64_t count = 1;
  for (int dim = 0; dim < shape.batch_dims; ++dim) count *= shape.batch_extent[dim];
  return count;
}

}  // namespace

Product product_of(const Problem& problem) {
  Product product;
  const bool linear = problem.op == OpId::linear;
  product.shape = linear ? linear_shape(problem) : matmul_shape(problem);
  fold_batch_into_rows(product.shape);
  product.shape.batch_count = batches(product.shape);
  product.a = problem.inputs[0].dtype;
  product.b = problem.inputs[1].dtype;
  product.out = problem.outputs[0].dtype;
  product.threads = threads_for(problem);
  if (!linear) return product;
  product.activation = activation_of(problem.attributes);
  product.has_bias = problem.inputs.size() > 2;
  if (product.has_bias) {
    product.bias = problem.inputs[2].dtype;
    product.bias_stride = problem.inputs[2].strides[0];
  }
  return product;
}

int useful_threads(int threads, double multiplications, double per_microsecond) {
  constexpr double least_microseconds = 10;  // for each thread: below that, handing out work costs more than it saves
  const double worth = multiplications / (per_microsecond * least_microseconds);
  return static_cast<int>(std::clamp<double>(worth, 1, threads));
}

}  // namespace xpuruntime::cpu
