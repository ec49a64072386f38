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

/// One loop for everything. Floats are summed in double, integers in 64 bits.
template <class Sum, class Load, class Store>
class ReferencePlan final : public Plan {
 public:
  ReferencePlan(const Product& product, Load load_a, Load load_b, Load load_bias, Store store)
      : product_(product), load_a_(load_a), load_b_(load_b), load_bias_(load_bias), store_(store) {}

  Status run(const RunArguments& arguments) const override {
    const MatmulShape& shape = product_.shape;
    void* out = arguments.outputs[0]->as<std::byte>();
    for (std::int64_t batch = 0; batch < shape.batch_count; ++batch) {
      const std::int64_t at_a = batch_offset(shape, shape.a, batch);
      const std::int64_t at_b = batch_offset(shape, shape.b, batch);
      const std::int64_t at_out = batch_offset(shape, shape.c, batch);
      for (std::int64_t i = 0; i < shape.m; ++i) {
        for (std::int64_t j = 0; j < shape.n; ++j) {
          const Sum sum = element(arguments, at_a + i * shape.a.row, at_b + j * shape.b.column, j);
          store_(out, at_out + i * shape.c.row + j * shape.c.column, activate(sum, product_.activation));
        }
      }
    }
    return {};
  }

 private:
  Sum element(const RunArguments& arguments, std::int64_t at_a, std::int64_t at_b, std::int64_t column) const {
    const MatmulShape& shape = product_.shape;
    const void* a = arguments.inputs[0]->as<const std::byte>();
    const void* b = arguments.inputs[1]->as<const std::byte>();
    Sum sum = 0;
    for (std::int64_t p = 0; p < shape.k; ++p) {
      sum = multiply_add(sum, load_a_(a, at_a + p * shape.a.column), load_b_(b, at_b + p * shape.b.row));
    }
    if (!product_.has_bias) return sum;
    return multiply_add(sum, load_bias_(arguments.inputs[2]->as<const std::byte>(), column * product_.bias_stride), 1);
  }

  Product product_;
  Load load_a_;
  Load load_b_;
  Load load_bias_;
  Store store_;
};

constexpr KernelSpec reference = {.ops = OpId::matmul, .name = "reference", .prepare = prepare_product_reference};

}  // namespace

std::unique_ptr<const Plan> prepare_product_reference(const Problem& problem, const PrepareContext& context) {
  if (problem.direction == Direction::backward) return prepare_product_backward_reference(problem);
  if (is_affine(problem)) return prepare_product_affine(reference, problem, context);
  const Product product = product_of(problem);
  bool floats = is_floating(product.out);
  for (const TensorSpec& input : problem.inputs) floats = floats || is_floating(input.dtype);
  const DataType bias = product.has_bias ? product.bias : product.a;
  if (floats) {
    return std::make_unique<ReferencePlan<double, LoadElement, StoreElement>>(
        product, loader_of(product.a), loader_of(product.b), loader_of(bias), storer_of(product.out));
  }
  return std::make_unique<ReferencePlan<std::int64_t, LoadInteger, StoreInteger>>(
      product, integer_loader_of(product.a), integer_loader_of(product.b), integer_loader_of(bias),
      integer_storer_of(product.out));
}

std::uint64_t workspace_product_reference(const Problem& problem, const DeviceProfile& profile) {
  if (is_affine(problem)) return workspace_product_affine(reference, problem, profile);
  if (problem.direction == Direction::forward || problem.op != OpId::linear) return 0;
  return static_cast<std::uint64_t>(element_count(problem.inputs.back())) * sizeof(double);
}

}  // namespace xpuruntime::cpu
