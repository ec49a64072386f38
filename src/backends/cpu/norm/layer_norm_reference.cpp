#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

/// layer_norm and rms_norm, three passes over the last dims, all in double.
class LayerNormPlan final : public Plan {
 public:
  explicit LayerNormPlan(const Problem& problem)
      : problem_(problem),
        centred_(problem.op == OpId::layer_norm),
        along_(last_dims(centred_ ? problem.attributes.integer("normalized_rank") : 1, problem.inputs[0].shape.size())),
        in_(parts_of(problem.inputs[0], along_)),
        out_(parts_of(problem.outputs[0], along_)),
        eps_(problem.attributes.real("eps")) {}

  Status run(const RunArguments& arguments) const override {
    Walk<2> across(in_.across.shape);
    across.set_operand(0, in_.across);
    across.set_operand(1, out_.across);
    if (element_count(in_.along) == 0) return {};
    for (; across.more(); across.next()) row(arguments, across.offset(0), across.offset(1));
    return {};
  }

 private:
  template <class Term>
  double average(const void* in, std::int64_t from, const Term& term) const {
    const LoadElement load = loader_of(in_.along.dtype);
    Walk<1> walk(in_.along.shape);
    walk.set_operand(0, in_.along);
    double sum = 0;
    for (; walk.more(); walk.next()) sum += term(load(in, from + walk.offset(0)));
    return sum / static_cast<double>(element_count(in_.along));
  }

  void row(const RunArguments& arguments, std::int64_t from, std::int64_t to) const {
    const void* in = arguments.inputs[0]->as<const std::byte>();
    const double mean = centred_ ? average(in, from, [](double x) { return x; }) : 0;
    const double power = average(in, from, [mean](double x) { return (x - mean) * (x - mean); });
    write(arguments, from, to, mean, 1 / std::sqrt(power + eps_));
  }

  void write(const RunArguments& arguments, std::int64_t from, std::int64_t to, double mean, double scale) const {
    const LoadElement load = loader_of(in_.along.dtype);
    const StoreElement store = storer_of(out_.along.dtype);
    Walk<4> walk(in_.along.shape);
    walk.set_operand(0, in_.along);
    walk.set_operand(1, out_.along);
    for (std::size_t i = 1; i < problem_.inputs.size(); ++i) walk.set_operand(1 + i, problem_.inputs[i]);
    for (; walk.more(); walk.next()) {
      double y = (load(arguments.inputs[0]->as<const std::byte>(), from + walk.offset(0)) - mean) * scale;
      if (problem_.inputs.size() > 1) y *= parameter(arguments, 1, walk.offset(2));
      if (problem_.inputs.size() > 2) y += parameter(arguments, 2, walk.offset(3));
      store(arguments.outputs[0]->as<std::byte>(), to + walk.offset(1), y);
    }
  }

  double parameter(const RunArguments& arguments, std::size_t input, std::int64_t offset) const {
    return loader_of(problem_.inputs[input].dtype)(arguments.inputs[input]->as<const std::byte>(), offset);
  }

  Problem problem_;
  bool centred_;
  unsigned along_;
  Parts in_;
  Parts out_;
  double eps_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_layer_norm_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_layer_norm_backward_reference(problem);
  return std::make_unique<LayerNormPlan>(problem);
}

}  // namespace xpuruntime::cpu
