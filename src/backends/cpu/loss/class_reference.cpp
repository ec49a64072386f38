#include <cmath>
#include <limits>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/loss/kernels.h"
#include "backends/cpu/loss/targets.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

/// cross_entropy and nll_loss, position by position, in double.
class ClassLossPlan final : public Plan {
 public:
  explicit ClassLossPlan(const Problem& problem)
      : problem_(problem),
        scores_(parts_of(problem.inputs[0], 1U << class_dim(problem.inputs[0]))),
        step_(problem.inputs[0].strides[class_dim(problem.inputs[0])]),
        classes_(problem.inputs[0].shape[class_dim(problem.inputs[0])]),
        logits_(problem.op == OpId::cross_entropy),
        probabilities_(is_floating(problem.inputs[1].dtype)),
        ignore_index_(problem.attributes.integer("ignore_index")),
        smoothing_(logits_ ? problem.attributes.real("label_smoothing") : 0),
        reduction_(problem.attributes.choice("reduction")) {}

  Status run(const RunArguments& arguments) const override {
    if (!probabilities_) {
      const Status status = check_targets(*arguments.inputs[1], classes_, ignore_index_, 1);
      if (!status.ok()) return status;
    }
    Walk<3> walk(scores_.across.shape);
    walk.set_operand(0, scores_.across);
    walk.set_operand(1, target_spec());
    if (reduction_ == "none") walk.set_operand(2, with_class_dim(problem_.outputs[0], problem_.inputs[0]));
    double total = 0, weights = 0;
    for (; walk.more(); walk.next()) {
      double weight = 1;
      const double loss = probabilities_ ? of_probabilities(arguments, walk.offset(0), walk.offset(1))
                                         : of_index(arguments, walk.offset(0), walk.offset(1), weight);
      if (reduction_ == "none") store(arguments, walk.offset(2), loss);
      total += loss;
      weights += weight;
    }
    if (reduction_ != "none") store(arguments, 0, reduction_ == "mean" ? total / weights : total);
    return {};
  }

 private:
  TensorSpec target_spec() const {
    if (!probabilities_) return with_class_dim(problem_.inputs[1], problem_.inputs[0]);
    return parts_of(problem_.inputs[1], 1U << class_dim(problem_.inputs[1])).across;
  }

  double score(const RunArguments& arguments, std::int64_t offset, std::int64_t c) const {
    return loader_of(problem_.inputs[0].dtype)(arguments.inputs[0]->as<const std::byte>(), offset + c * step_);
  }

  double class_weight(const RunArguments& arguments, std::int64_t c) const {
    if (problem_.inputs.size() < 3) return 1;
    const TensorSpec& spec = problem_.inputs[2];
    return loader_of(spec.dtype)(arguments.inputs[2]->as<const std::byte>(), c * spec.strides[0]);
  }

  void store(const RunArguments& arguments, std::int64_t offset, double value) const {
    storer_of(problem_.outputs[0].dtype)(arguments.outputs[0]->as<std::byte>(), offset, value);
  }

  /// What is added to a score to make it the logarithm of a probability.
  double shift(const RunArguments& arguments, std::int64_t offset, double& highest) const {
    highest = 0;
    if (!logits_) return 0;
    highest = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < classes_; ++c) highest = std::fmax(highest, score(arguments, offset, c));
    double sum = 0;
    for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(score(arguments, offset, c) - highest);
    return std::log(sum);
  }

  double of_index(const RunArguments& arguments, std::int64_t offset, std::int64_t at, double& weight) const {
    const TensorSpec& spec = problem_.inputs[1];
    const std::int64_t target = integer_loader_of(spec.dtype)(arguments.inputs[1]->as<const std::byte>(), at);
    weight = target == ignore_index_ ? 0 : class_weight(arguments, target);
    if (target == ignore_index_) return 0;
    double highest;
    const double log_sum = shift(arguments, offset, highest);
    const auto surprise = [&](std::int64_t c) { return log_sum - (score(arguments, offset, c) - highest); };
    double loss = (1 - smoothing_) * weight * surprise(target);
    if (smoothing_ == 0) return loss;
    double spread = 0;
    for (std::int64_t c = 0; c < classes_; ++c) spread += class_weight(arguments, c) * surprise(c);
    return loss + smoothing_ / static_cast<double>(classes_) * spread;
  }

  double of_probabilities(const RunArguments& arguments, std::int64_t offset, std::int64_t at) const {
    const TensorSpec& spec = problem_.inputs[1];
    const std::int64_t step = spec.strides[class_dim(spec)];
    double highest;
    const double log_sum = shift(arguments, offset, highest);
    double loss = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double target = loader_of(spec.dtype)(arguments.inputs[1]->as<const std::byte>(), at + c * step);
      const double smooth = (1 - smoothing_) * target + smoothing_ / static_cast<double>(classes_);
      loss += class_weight(arguments, c) * smooth * (log_sum - (score(arguments, offset, c) - highest));
    }
    return loss;
  }

  Problem problem_;
  Parts scores_;
  std::int64_t step_;
  std::int64_t classes_;
  bool logits_;
  bool probabilities_;
  std::int64_t ignore_index_;
  double smoothing_;
  std::string_view reduction_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_class_loss_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_class_loss_backward_reference(problem);
  return std::make_unique<ClassLossPlan>(problem);
}

}  // namespace xpuruntime::cpu
