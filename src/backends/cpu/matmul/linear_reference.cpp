#include <cmath>
#include <numbers>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/scalar_extremes.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/matmul/product.h"

namespace xpuruntime::cpu {
namespace {

double activate(double x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return maximum(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::none:
      break;
  }
  return x;
}

std::int64_t activate(std::int64_t x, Activation activation) { return activation == Activation::relu && x < 0 ? 0 : x; }

double multiply_add(double sum, double a, double b) { return sum + a * b; }
// Wraps as two's complement does, without undefined behaviour.
std::int64_t multiply_add(std::int64_t sum, std::int64_t a, std::int64_t b) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + product);
}

/// One loop for everything. Floats are summed in double, integers in 64 bits.
template <class Sum, class Load, class Store>
class LinearReferencePlan final : public Plan {
 public:
  LinearReferencePlan(const Product& product, Load load_x, Load load_weight, Load load_bias, Store store)
      : product_(product), load_x_(load_x), load_weight_(load_weight), load_bias_(load_bias), store_(store) {}

  Status run(const RunArguments& arguments) const override {
    const MatmulShape& shape = product_.shape;
    const void* x = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    for (std::int64_t batch = 0; batch < shape.batch_count; ++batch) {
      const std::int64_t at_x = batch_offset(shape, shape.a, batch);
      const std::int64_t at_out = batch_offset(shape, shape.c, batch);
      for (std::int64_t i = 0; i < shape.m; ++i) {
        for (std::int64_t j = 0; j < shape.n; ++j) {
          const Sum sum = element(arguments, x, at_x + i * shape.a.row, j);
          store_(out, at_out + i * shape.c.row + j * shape.c.column, activate(sum, product_.activation));
        }
      }
    }
    return {};
  }

 private:
  Sum element(const RunArguments& arguments, const void* x, std::int64_t at_x, std::int64_t j) const {
    const MatmulShape& shape = product_.shape;
    const void* weight = arguments.inputs[1]->as<const std::byte>();
    Sum sum = 0;
    for (std::int64_t p = 0; p < shape.k; ++p) {
      sum = multiply_add(sum, load_x_(x, at_x + p * shape.a.column),
                         load_weight_(weight, p * shape.b.row + j * shape.b.column));
    }
    if (!product_.has_bias) return sum;
    return multiply_add(sum, load_bias_(arguments.inputs[2]->as<const std::byte>(), j * product_.bias_stride), 1);
  }

  Product product_;
  Load load_x_;
  Load load_weight_;
  Load load_bias_;
  Store store_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_linear_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_product_backward_reference(problem);
  const Product product = product_of(problem);
  bool floats = is_floating(product.out);
  for (const TensorSpec& input : problem.inputs) floats = floats || is_floating(input.dtype);
  const DataType bias = product.has_bias ? product.bias : product.a;
  if (floats) {
    return std::make_unique<LinearReferencePlan<double, LoadElement, StoreElement>>(
        product, loader_of(product.a), loader_of(product.b), loader_of(bias), storer_of(product.out));
  }
  return std::make_unique<LinearReferencePlan<std::int64_t, LoadInteger, StoreInteger>>(
      product, integer_loader_of(product.a), integer_loader_of(product.b), integer_loader_of(bias),
      integer_storer_of(product.out));
}

}  // namespace xpuruntime::cpu
