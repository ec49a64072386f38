#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/norm/layer_norm.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

/// Norms of rows, three passes over the last dims, all in double. A residual is added before: the sum is stored, and
/// read from there.
class LayerNormPlan final : public Plan {
 public:
  explicit LayerNormPlan(const Problem& problem)
      : problem_(problem),
        centred_(problem.op == OpId::layer_norm),
        adds_(adds_residual(problem)),
        weight_(weight_of(problem)),
        along_(last_dims(centred_ ? problem.attributes.integer("normalized_rank") : 1, problem.inputs[0].shape.size())),
        in_(parts_of(adds_ ? problem.outputs[1] : problem.inputs[0], along_)),
        out_(parts_of(problem.outputs[0], along_)),
        eps_(problem.attributes.real("eps")) {}

  Status run(const RunArguments& arguments) const override {
    Walk<2> across(in_.across.shape, in_.across, out_.across);
    if (element_count(in_.along) == 0) return {};
    if (adds_) add(arguments);
    for (; across.more(); across.next()) row(arguments, across.offset(0), across.offset(1));
    return {};
  }

 private:
  void add(const RunArguments& arguments) const {
    const TensorSpec &x = problem_.inputs[0], &residual = problem_.inputs[1], &sum = problem_.outputs[1];
    const LoadElement load_x = loader_of(x.dtype), load_residual = loader_of(residual.dtype);
    const StoreElement store = storer_of(sum.dtype);
    Walk<3> walk(x.shape, x, residual, sum);
    for (; walk.more(); walk.next()) {
      store(arguments.outputs[1]->as<void>(), walk.offset(2),
            load_x(arguments.inputs[0]->as<void>(), walk.offset(0)) +
                load_residual(arguments.inputs[1]->as<void>(), walk.offset(1)));
    }
  }

  const void* source(const RunArguments& arguments) const {
    return (adds_ ? arguments.outputs[1] : arguments.inputs[0])->as<const std::byte>();
  }

  template <class Term>
  double average(const void* in, std::int64_t from, const Term& term) const {
    const LoadElement load = loader_of(in_.along.dtype);
    Walk<1> walk(in_.along.shape, in_.along);
    double sum = 0;
    for (; walk.more(); walk.next()) sum += term(load(in, from + walk.offset(0)));
    return sum / static_cast<double>(element_count(in_.along));
  }

  void row(const RunArguments& arguments, std::int64_t from, std::int64_t to) const {
    const void* in = source(arguments);
    const double mean = centred_ ? average(in, from, [](double x) { return x; }) : 0;
    const double power = average(in, from, [mean](double x) { return (x - mean) * (x - mean); });
    write(arguments, from, to, mean, 1 / std::sqrt(power + eps_));
  }

  void write(const RunArguments& arguments, std::int64_t from, std::int64_t to, double mean, double scale) const {
    const LoadElement load = loader_of(in_.along.dtype);
    const StoreElement store = storer_of(out_.along.dtype);
    Walk<4> walk(in_.along.shape, in_.along, out_.along);
    const std::size_t parameters = problem_.inputs.size() - std::min(weight_, problem_.inputs.size());
    for (std::size_t i = 0; i < parameters; ++i) walk.set_operand(2 + i, problem_.inputs[weight_ + i]);
    for (; walk.more(); walk.next()) {
      double y = (load(source(arguments), from + walk.offset(0)) - mean) * scale;
      if (parameters > 0) y *= parameter(arguments, weight_, walk.offset(2));
      if (parameters > 1) y += parameter(arguments, weight_ + 1, walk.offset(3));
      store(arguments.outputs[0]->as<std::byte>(), to + walk.offset(1), y);
    }
  }

  double parameter(const RunArguments& arguments, std::size_t input, std::int64_t offset) const {
    return loader_of(problem_.inputs[input].dtype)(arguments.inputs[input]->as<const std::byte>(), offset);
  }

  Problem problem_;
  bool centred_;
  bool adds_;
  std::size_t weight_;
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
