#include <cmath>
#include <limits>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/loss/class_loss.h"
#include "backends/cpu/loss/kernels.h"
#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

/// What both directions of cross_entropy and nll_loss read, position by position, in double.
class ClassReference : public Plan {
 protected:
  explicit ClassReference(const Problem& problem)
      : problem_(problem),
        scores_(parts_of(problem.inputs[0], 1U << class_dim(problem.inputs[0]))),
        step_(problem.inputs[0].strides[class_dim(problem.inputs[0])]),
        classes_(problem.inputs[0].shape[class_dim(problem.inputs[0])]),
        logits_(problem.op == OpId::cross_entropy),
        probabilities_(is_floating(problem.inputs[1].dtype)),
        has_weight_(problem.inputs.size() > (problem.direction == Direction::backward ? 3U : 2U)),
        ignore_index_(problem.attributes.integer("ignore_index")),
        smoothing_(logits_ ? problem.attributes.real("label_smoothing") : 0),
        reduction_(problem.attributes.choice("reduction")) {}

  Status check(const RunArguments& arguments) const {
    return probabilities_ ? Status() : check_targets(*arguments.inputs[1], classes_, ignore_index_, 1);
  }

  TensorSpec target_spec() const {
    if (!probabilities_) return with_class_dim(problem_.inputs[1], problem_.inputs[0]);
    return parts_of(problem_.inputs[1], 1U << class_dim(problem_.inputs[1])).across;
  }

  double load(const RunArguments& arguments, std::size_t input, std::int64_t offset) const {
    return loader_of(problem_.inputs[input].dtype)(arguments.inputs[input]->as<const std::byte>(), offset);
  }
  double score(const RunArguments& arguments, std::int64_t offset, std::int64_t c) const {
    return load(arguments, 0, offset + c * step_);
  }
  double class_weight(const RunArguments& arguments, std::int64_t c) const {
    return has_weight_ ? load(arguments, 2, c * problem_.inputs[2].strides[0]) : 1;
  }
  std::int64_t target(const RunArguments& arguments, std::int64_t at) const {
    return integer_loader_of(problem_.inputs[1].dtype)(arguments.inputs[1]->as<const std::byte>(), at);
  }
  /// What a target of probabilities gives to class c.
  double probability(const RunArguments& arguments, std::int64_t at, std::int64_t c) const {
    return load(arguments, 1, at + c * problem_.inputs[1].strides[class_dim(problem_.inputs[1])]);
  }
  double highest_score(const RunArguments& arguments, std::int64_t offset) const {
    double highest = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < classes_; ++c) highest = std::fmax(highest, score(arguments, offset, c));
    return highest;
  }
  /// Over all classes, of exponentials of what scores are above `shift`.
  double sum_of_exp(const RunArguments& arguments, std::int64_t offset, double shift) const {
    double sum = 0;
    for (std::int64_t c = 0; c < classes_; ++c) sum += std::exp(score(arguments, offset, c) - shift);
    return sum;
  }

  void store(const RunArguments& arguments, std::int64_t offset, double value) const {
    storer_of(problem_.outputs[0].dtype)(arguments.outputs[0]->as<std::byte>(), offset, value);
  }

  Problem problem_;
  Parts scores_;
  std::int64_t step_, classes_;
  bool logits_, probabilities_, has_weight_;
  std::int64_t ignore_index_;
  double smoothing_;
  std::string_view reduction_;
};

class ClassLossPlan final : public ClassReference {
 public:
  explicit ClassLossPlan(const Problem& problem) : ClassReference(problem) {}

  Status run(const RunArguments& arguments) const override {
    if (const Status status = check(arguments); !status.ok()) return status;
    Walk<3> walk(scores_.across.shape, scores_.across, target_spec());
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
  /// What is added to a score to make it the logarithm of a probability.
  double shift(const RunArguments& arguments, std::int64_t offset, double& highest) const {
    highest = logits_ ? highest_score(arguments, offset) : 0;
    return logits_ ? std::log(sum_of_exp(arguments, offset, highest)) : 0;
  }

  double of_index(const RunArguments& arguments, std::int64_t offset, std::int64_t at, double& weight) const {
    const std::int64_t own = target(arguments, at);
    weight = own == ignore_index_ ? 0 : class_weight(arguments, own);
    if (own == ignore_index_) return 0;
    double highest;
    const double log_sum = shift(arguments, offset, highest);
    const auto surprise = [&](std::int64_t c) { return log_sum - (score(arguments, offset, c) - highest); };
    double loss = (1 - smoothing_) * weight * surprise(own);
    if (smoothing_ == 0) return loss;
    double spread = 0;
    for (std::int64_t c = 0; c < classes_; ++c) spread += class_weight(arguments, c) * surprise(c);
    return loss + smoothing_ / static_cast<double>(classes_) * spread;
  }

  double of_probabilities(const RunArguments& arguments, std::int64_t offset, std::int64_t at) const {
    double highest;
    const double log_sum = shift(arguments, offset, highest);
    double loss = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double smooth =
          (1 - smoothing_) * probability(arguments, at, c) + smoothing_ / static_cast<double>(classes_);
      loss += class_weight(arguments, c) * smooth * (log_sum - (score(arguments, offset, c) - highest));
    }
    return loss;
  }
};

/// The gradient of the scores. A position's loss is the sum of f (log(sum of exp(x)) - x) over the classes, f being
/// what its target gives to each; so the gradient is (sum of f) softmax(x) - f, and that of nll_loss, which takes
/// logarithms of probabilities, -f.
class ClassLossBackwardPlan final : public ClassReference {
 public:
  explicit ClassLossBackwardPlan(const Problem& problem)
      : ClassReference(problem),
        out_(parts_of(problem.outputs[0], 1U << class_dim(problem.inputs[0]))),
        out_step_(problem.outputs[0].strides[class_dim(problem.inputs[0])]) {}

  Status run(const RunArguments& arguments) const override {
    if (const Status status = check(arguments); !status.ok()) return status;
    const double divisor = reduction_ == "mean" ? counted(arguments) : 1;
    for (Walk<4> walk = positions(); walk.more(); walk.next()) {
      write(arguments, walk, load(arguments, problem_.inputs.size() - 1, walk.offset(3)) / divisor);
    }
    return {};
  }

 private:
  /// Scores, targets, the output and, where there is one for each position, the gradient.
  Walk<4> positions() const {
    Walk<4> walk(scores_.across.shape, scores_.across, target_spec(), out_.across);
    if (reduction_ == "none") walk.set_operand(3, with_class_dim(problem_.inputs.back(), problem_.inputs[0]));
    return walk;
  }

  /// What the mean divides by.
  double counted(const RunArguments& arguments) const {
    double sum = 0;
    for (Walk<4> walk = positions(); walk.more(); walk.next()) {
      const std::int64_t own = probabilities_ ? 0 : target(arguments, walk.offset(1));
      if (probabilities_) sum += 1;
      if (!probabilities_ && own != ignore_index_) sum += class_weight(arguments, own);
    }
    return sum;
  }

  /// What the target at `at` gives to class c.
  double share(const RunArguments& arguments, std::int64_t at, std::int64_t c) const {
    const double given = probabilities_ ? probability(arguments, at, c) : target(arguments, at) == c ? 1 : 0;
    return class_weight(arguments, c) * ((1 - smoothing_) * given + smoothing_ / static_cast<double>(classes_));
  }

  void write(const RunArguments& arguments, const Walk<4>& walk, double gradient) const {
    const std::int64_t from = walk.offset(0), at = walk.offset(1), to = walk.offset(2);
    const bool ignored = !probabilities_ && target(arguments, at) == ignore_index_;
    const double highest = highest_score(arguments, from), sum = sum_of_exp(arguments, from, highest);
    double shares = 0;
    for (std::int64_t c = 0; c < classes_; ++c) shares += share(arguments, at, c);
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double own = share(arguments, at, c);
      double value = 0;
      if (logits_) value = gradient * (shares * std::exp(score(arguments, from, c) - highest) / sum - own);
      // Only the target has a part in nll_loss, whatever the gradient: NaN and infinity times 0 would be NaN.
      if (!logits_ && target(arguments, at) == c) value = -gradient * own;
      store(arguments, to + c * out_step_, ignored ? 0 : value);
    }
  }

  Parts out_;
  std::int64_t out_step_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_class_loss_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return std::make_unique<ClassLossBackwardPlan>(problem);
  return std::make_unique<ClassLossPlan>(problem);
}

}  // namespace xpuruntime::cpu
