#include <cmath>
#include <numbers>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/loss/kernels.h"

namespace xpuruntime::cpu {
namespace {

/// Element by element, in double.
class PointwiseLossPlan final : public Plan {
 public:
  explicit PointwiseLossPlan(const Problem& problem)
      : problem_(problem),
        terms_(pointwise_loss_terms(problem)),
        shape_(broadcast_shapes(problem.inputs[0].shape, problem.inputs[1].shape)),
        reduction_(problem.attributes.choice("reduction")) {}

  Status run(const RunArguments& arguments) const override {
    const LoadElement load_x = loader_of(problem_.inputs[0].dtype);
    const LoadElement load_t = loader_of(problem_.inputs[1].dtype);
    const StoreElement store = storer_of(problem_.outputs[0].dtype);
    void* out = arguments.outputs[0]->as<std::byte>();
    Walk<3> walk(shape_, problem_.inputs[0], problem_.inputs[1]);
    if (reduction_ == "none") walk.set_operand(2, problem_.outputs[0]);
    double total = 0;
    for (; walk.more(); walk.next()) {
      const double loss = term(load_x(arguments.inputs[0]->as<const std::byte>(), walk.offset(0)),
                               load_t(arguments.inputs[1]->as<const std::byte>(), walk.offset(1)));
      if (reduction_ == "none") store(out, walk.offset(2), loss);
      total += loss;
    }
    if (reduction_ != "none") store(out, 0, total / terms_.divisor);
    return {};
  }

 private:
  double term(double x, double t) const {
    switch (terms_.kind) {
      case PointwiseLoss::divergence:  // 0 log 0 is 0
        return t == 0 ? 0 - t * x : t * (std::log(t) - x);
      case PointwiseLoss::divergence_of_logs:
        return std::exp(t) * (t - x);
      case PointwiseLoss::poisson:
        return with_factorial(x - t * std::log(x + terms_.eps), t);
      case PointwiseLoss::poisson_of_logs:
        return with_factorial(std::exp(x) - t * x, t);
    }
    return 0;
  }

  // Stirling's formula for log(t!), of use from 1 on.
  double with_factorial(double loss, double t) const {
    return terms_.full && t > 1 ? loss + t * std::log(t) - t + 0.5 * std::log(2 * std::numbers::pi * t) : loss;
  }

  Problem problem_;
  PointwiseLossTerms terms_;
  Dims shape_;
  std::string_view reduction_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_pointwise_loss_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<PointwiseLossPlan>(problem);
}

}  // namespace xpuruntime::cpu
