#include "backends/cpu/matmul/product.h"

#include <algorithm>

#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {

Product product_of(const Problem& problem) {
  Product product;
  const bool linear = problem.op == OpId::linear;
  product.shape = product_shape(problem);
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
