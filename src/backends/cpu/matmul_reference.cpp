#include "backends/cpu/elements.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/matmul_view.h"

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
      : view_(problem), load_a_(load_a), load_b_(load_b), store_(store) {}

  Status run(const RunArguments& arguments) const override {
    const void* a = arguments.inputs[0]->as<const std::byte>();
    const void* b = arguments.inputs[1]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    for (std::int64_t batch = 0; batch < view_.batches; ++batch) {
      const MatmulView::Offsets at = view_.offsets(batch);
      for (std::int64_t i = 0; i < view_.m; ++i) {
        for (std::int64_t j = 0; j < view_.n; ++j) {
          Sum sum = 0;
          for (std::int64_t p = 0; p < view_.k; ++p) {
            sum = multiply_add(sum, load_a_(a, at.a + i * view_.a.row + p * view_.a.column),
                               load_b_(b, at.b + p * view_.b.row + j * view_.b.column));
          }
          store_(out, at.out + i * view_.out.row + j * view_.out.column, sum);
        }
      }
    }
    return {};
  }

 private:
  MatmulView view_;
  Load load_a_;
  Load load_b_;
  Store store_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_matmul_reference(const Problem& problem, const PrepareContext&) {
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
