#include <cmath>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

struct Moments {
  double mean = 0;
  double variance = 1;
};

/// Channel by channel, in double: statistics (given, or of the batch), then the values, then the running statistics.
class BatchNormPlan final : public Plan {
 public:
  explicit BatchNormPlan(const Problem& problem)
      : problem_(problem),
        in_(parts_of(problem.inputs[0], ~2U)),
        out_(parts_of(problem.outputs[0], ~2U)),
        training_(problem.attributes.boolean("training")),
        momentum_(problem.attributes.real("momentum")),
        eps_(problem.attributes.real("eps")) {}

  Status run(const RunArguments& arguments) const override {
    const std::int64_t channels = problem_.inputs[0].shape[1];
    for (std::int64_t c = 0; c < channels; ++c) {
      const Moments moments =
          training_ ? batch_moments(arguments, c) : Moments{input(arguments, 1, c, 0), input(arguments, 2, c, 1)};
      write(arguments, c, moments);
      if (problem_.outputs.size() == 3) update(arguments, c, moments);
    }
    return {};
  }

 private:
  /// Element c of a vector of channels; `absent` where the call has none.
  double input(const RunArguments& arguments, std::size_t which, std::int64_t c, double absent) const {
    if (which >= problem_.inputs.size()) return absent;
    const TensorSpec& spec = problem_.inputs[which];
    return loader_of(spec.dtype)(arguments.inputs[which]->as<const std::byte>(), c * spec.strides[0]);
  }

  Moments batch_moments(const RunArguments& arguments, std::int64_t c) const {
    const double mean = average(arguments, c, [](double x) { return x; });
    return {mean, average(arguments, c, [mean](double x) { return (x - mean) * (x - mean); })};
  }

  template <class Term>
  double average(const RunArguments& arguments, std::int64_t c, const Term& term) const {
    const LoadElement load = loader_of(in_.along.dtype);
    Walk<1> walk(in_.along.shape, in_.along);
    double sum = 0;
    for (; walk.more(); walk.next()) {
      sum += term(load(arguments.inputs[0]->as<const std::byte>(), c * in_.across.strides[1] + walk.offset(0)));
    }
    return sum / static_cast<double>(element_count(in_.along));
  }

  void write(const RunArguments& arguments, std::int64_t c, const Moments& moments) const {
    const LoadElement load = loader_of(in_.along.dtype);
    const StoreElement store = storer_of(out_.along.dtype);
    const double scale = input(arguments, 3, c, 1) / std::sqrt(moments.variance + eps_);
    const double shift = input(arguments, 4, c, 0);
    Walk<2> walk(in_.along.shape, in_.along, out_.along);
    for (; walk.more(); walk.next()) {
      const double x = load(arguments.inputs[0]->as<const std::byte>(), c * in_.across.strides[1] + walk.offset(0));
      store(arguments.outputs[0]->as<std::byte>(), c * out_.across.strides[1] + walk.offset(1),
            (x - moments.mean) * scale + shift);
    }
  }

  // The running variance is the unbiased one; of a single value there is none, so the biased one stands in.
  void update(const RunArguments& arguments, std::int64_t c, const Moments& moments) const {
    const auto count = static_cast<double>(element_count(in_.along));
    const double momentum = count > 0 ? momentum_ : 0;  // an empty batch has nothing to say
    const double mean = count > 0 ? moments.mean : 0;
    const double biased = count > 0 ? moments.variance : 0;
    const double unbiased = count > 1 ? biased * (count / (count - 1)) : biased;
    output(arguments, 1, c, (1 - momentum) * input(arguments, 1, c, 0) + momentum * mean);
    output(arguments, 2, c, (1 - momentum) * input(arguments, 2, c, 1) + momentum * unbiased);
  }

  void output(const RunArguments& arguments, std::size_t which, std::int64_t c, double value) const {
    const TensorSpec& spec = problem_.outputs[which];
    storer_of(spec.dtype)(arguments.outputs[which]->as<std::byte>(), c * spec.strides[0], value);
  }

  Problem problem_;
  Parts in_;
  Parts out_;
  bool training_;
  double momentum_;
  double eps_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_batch_norm_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<BatchNormPlan>(problem);
}

}  // namespace xpuruntime::cpu
