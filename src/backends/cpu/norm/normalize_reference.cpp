#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

/// x / max(norm, eps) along one dim, in double.
class NormalizePlan final : public Plan {
 public:
  explicit NormalizePlan(const Problem& problem)
      : p_(problem.attributes.real("p")),
        eps_(problem.attributes.real("eps")),
        along_(dim_bit(problem.attributes.integer("dim"), problem.inputs[0].shape.size())),
        in_(parts_of(problem.inputs[0], along_)),
        out_(parts_of(problem.outputs[0], along_)) {}

  Status run(const RunArguments& arguments) const override {
    const void* in = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    Walk<2> across(in_.across.shape, in_.across, out_.across);
    for (; across.more(); across.next()) line(in, across.offset(0), out, across.offset(1));
    return {};
  }

 private:
  void line(const void* in, std::int64_t from, void* out, std::int64_t to) const {
    const LoadElement load = loader_of(in_.along.dtype);
    const StoreElement store = storer_of(out_.along.dtype);
    const double length = norm(load, in, from);
    // NaN is not below eps, and stays.
    const double divisor = length < eps_ ? eps_ : length;
    Walk<2> walk(in_.along.shape, in_.along, out_.along);
    for (; walk.more(); walk.next()) store(out, to + walk.offset(1), load(in, from + walk.offset(0)) / divisor);
  }

  double norm(LoadElement load, const void* in, std::int64_t from) const {
    Walk<1> walk(in_.along.shape, in_.along);
    double total = 0;
    for (; walk.more(); walk.next()) {
      const double x = std::abs(load(in, from + walk.offset(0)));
      if (!std::isinf(p_)) {
        total += term(x);
      } else if (x > total || std::isnan(x)) {
        total = x;
      }
    }
    if (p_ == 2) return std::sqrt(total);
    return p_ == 0 || p_ == 1 || std::isinf(p_) ? total : std::pow(total, 1 / p_);
  }

  double term(double x) const {
    if (p_ == 0) return x != 0;
    if (p_ == 1) return x;
    return p_ == 2 ? x * x : std::pow(x, p_);
  }

  double p_;
  double eps_;
  unsigned along_;
  Parts in_;
  Parts out_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_normalize_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<NormalizePlan>(problem);
}

}  // namespace xpuruntime::cpu
