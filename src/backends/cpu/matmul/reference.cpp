#include "backends/cpu/base/elements.h"
#include "backends/cpu/matmul/kernels.h"
#include "core/matmul_shape.h"

namespace xpuruntime::cpu {
namespace {

double multiply_add(double sum, double a, double b) { return sum + a * b; }
// Wraps as two's complement does, without undefined behaviour.
std::int64_t multiply_add(std::int64_t sum, std::int64_t a, std::int64_t b) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + product);
}

/// One loop for everything. Floats are summed in double, integers in 64 bits.
template <class Sum, class Load, class Store>
class ReferencePlan final : public Plan {
 public:
  ReferencePlan(const Problem& problem, Load load_a, Load load_b, Store store)
      : shape_(matmul_shape(problem)), load_a_(load_a), load_b_(load_b), store_(store) {}

  Status run(const RunArguments& arguments) const override {
    const void* a = arguments.inputs[0]->as<const std::byte>();
    const void* b = arguments.inputs[1]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    for (std::int64_t batch = 0; batch < shape_.batch_count; ++batch) {
      const std::int64_t at_a = batch_offset(shape_, shape_.a, batch);
      const std::int64_t at_b = batch_offset(shape_, shape_.b, batch);
      const std::int64_t at_c = batch_offset(shape_, shape_.c, batch);
      for (std::int64_t i = 0; i < shape_.m; ++i) {
        for (std::int64_t j = 0; j < shape_.n; ++j) {
          Sum sum = 0;
          for (std::int64_t p = 0; p < shape_.k; ++p) {
            sum = multiply_add(sum, load_a_(a, at_a + i * shape_.a.row + p * shape_.a.column),
                               load_b_(b, at_b + p * shape_.b.row + j * shape_.b.column));
          }
          store_(out, at_c + i * shape_.c.row + j * shape_.c.column, sum);
        }
      }
    }
    return {};
  }

 private:
  MatmulShape shape_;
  Load load_a_;
  Load load_b_;
  Store store_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_matmul_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_product_backward_reference(problem);
  const DataType a = problem.inputs[0].dtype;
  const DataType b = problem.inputs[1].dtype;
  const DataType out = problem.outputs[0].dtype;
  if (is_floating(a) || is_floating(b) || is_floating(out)) {
    return std::make_unique<ReferencePlan<double, LoadElement, StoreElement>>(problem, loader_of(a), loader_of(b),
                                                                              storer_of(out));
  }
  return std::make_unique<ReferencePlan<std::int64_t, LoadInteger, StoreInteger>>(
      problem, integer_loader_of(a), integer_loader_of(b), integer_storer_of(out));
}

}  // namespace xpuruntime::cpu
