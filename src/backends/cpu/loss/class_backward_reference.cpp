#include <cmath>
#include <limits>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/loss/kernels.h"
#include "backends/cpu/loss/targets.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

/// The gradient of the scores of cross_entropy and nll_loss, position by position, in double. A position's loss is the
/// sum of f (log(sum of exp(x)) - x) over the classes, f being what its target gives to each; so the gradient is
/// (sum of f) softmax(x) - f, and that of nll_loss, which takes logarithms of probabilities, -f.
class ClassLossBackwardPlan final : public Plan {
 public:
  explicit ClassLossBackwardPlan(const Problem& problem)
      : problem_(problem),
        scores_(parts_of(problem.inputs[0], 1U << class_dim(problem.inputs[0]))),
        out_(parts_of(problem.outputs[0], 1U << class_dim(problem.inputs[0]))),
        step_(problem.inputs[0].strides[class_dim(problem.inputs[0])]),
        out_step_(problem.outputs[0].strides[class_dim(problem.inputs[0])]),
        classes_(problem.inputs[0].shape[class_dim(problem.inputs[0])]),
        logits_(problem.op == OpId::cross_entropy),
        probabilities_(is_floating(problem.inputs[1].dtype)),
        has_weight_(problem.inputs.size() > 3),
        ignore_index_(problem.attributes.integer("ignore_index")),
        smoothing_(logits_ ? problem.attributes.real("label_smoothing") : 0),
        reduction_(problem.attributes.choice("reduction")) {}

  Status run(const RunArguments& arguments) const override {
    if (!probabilities_) {
      const Status status = check_targets(*arguments.inputs[1], classes_, ignore_index_, 1);
      if (!status.ok()) return status;
    }
    const double divisor = reduction_ == "mean" ? counted(arguments) : 1;
    Walk<4> walk = positions();
    for (; walk.more(); walk.next()) write(arguments, walk, gradient(arguments, walk.offset(3)) / divisor);
    return {};
  }

 private:
  /// Scores, targets, the output and, where there is one for each position, the gradient.
  Walk<4> positions() const {
    Walk<4> walk(scores_.across.shape);
    walk.set_operand(0, scores_.across);
    walk.set_operand(1, probabilities_ ? parts_of(problem_.inputs[1], 1U << class_dim(problem_.inputs[1])).across
                                       : with_class_dim(problem_.inputs[1], problem_.inputs[0]));
    walk.set_operand(2, out_.across);
    if (reduction_ == "none") walk.set_operand(3, with_class_dim(problem_.inputs.back(), problem_.inputs[0]));
    return walk;
  }

  double load(const RunArguments& arguments, std::size_t input, std::int64_t offset) const {
    return loader_of(problem_.inputs[input].dtype)(arguments.inputs[input]->as<const std::byte>(), offset);
  }
  double gradient(const RunArguments& arguments, std::int64_t offset) const {
    return load(arguments, problem_.inputs.size() - 1, offset);
  }
  double class_weight(const RunArguments& arguments, std::int64_t c) const {
    return has_weight_ ? load(arguments, 2, c * problem_.inputs[2].strides[0]) : 1;
  }
  std::int64_t target(const RunArguments& arguments, std::int64_t offset) const {
    return integer_loader_of(problem_.inputs[1].dtype)(arguments.inputs[1]->as<const std::byte>(), offset);
  }

  /// What the mean divides by.
  double counted(const RunArguments& arguments) const {
    double sum = 0;
    for (Walk<4> walk = positions(); walk.more(); walk.next()) {
      const std::int64_t at = probabilities_ ? 0 : target(arguments, walk.offset(1));
      if (probabilities_) sum += 1;
      if (!probabilities_ && at != ignore_index_) sum += class_weight(arguments, at);
    }
    return sum;
  }

  /// What the target at `at` gives to class c.
  double share(const RunArguments& arguments, std::int64_t at, std::int64_t c) const {
    const double even = smoothing_ / static_cast<double>(classes_);
    if (probabilities_) {
      const std::int64_t step = problem_.inputs[1].strides[class_dim(problem_.inputs[1])];
      return class_weight(arguments, c) * ((1 - smoothing_) * load(arguments, 1, at + c * step) + even);
    }
    return class_weight(arguments, c) * ((target(arguments, at) == c ? 1 - smoothing_ : 0) + even);
  }

  void store(const RunArguments& arguments, std::int64_t offset, double value) const {
    storer_of(problem_.outputs[0].dtype)(arguments.outputs[0]->as<std::byte>(), offset, value);
  }

  void write(const RunArguments& arguments, const Walk<4>& walk, double gradient) const {
    const std::int64_t from = walk.offset(0), at = walk.offset(1), to = walk.offset(2);
    const bool ignored = !probabilities_ && target(arguments, at) == ignore_index_;
    double highest = -std::numeric_limits<double>::infinity(), sum = 0, shares = 0;
    for (std::int64_t c = 0; c < classes_; ++c) highest = std::fmax(highest, load(arguments, 0, from + c * step_));
    for (std::int64_t c = 0; c < classes_; ++c) {
      sum += std::exp(load(arguments, 0, from + c * step_) - highest);
      shares += share(arguments, at, c);
    }
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double own = share(arguments, at, c);
      double value = 0;
      if (logits_) value = gradient * (shares * std::exp(load(arguments, 0, from + c * step_) - highest) / sum - own);
      // What is no target has no part in nll_loss, whatever the gradient: NaN and infinity times 0 would be NaN.
      if (!logits_ && target(arguments, at) == c) value = -gradient * own;
      store(arguments, to + c * out_step_, ignored ? 0 : value);
    }
  }

  Problem problem_;
  Parts scores_, out_;
  std::int64_t step_, out_step_, classes_;
  bool logits_, probabilities_, has_weight_;
  std::int64_t ignore_index_;
  double smoothing_;
  std::string_view reduction_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_class_loss_backward_reference(const Problem& problem) {
  return std::make_unique<ClassLossBackwardPlan>(problem);
}

}  // namespace xpuruntime::cpu
