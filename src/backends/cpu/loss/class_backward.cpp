#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/loss/class_loss.h"
#include "backends/cpu/loss/kernels.h"

namespace xpuruntime::cpu {
namespace {

// Positions whose targets and gradients are read at once.
constexpr std::int64_t unit_positions = 256;

/// What is known of a call before its positions are gone over.
struct ClassGradient {
  ClassLossJob job = {};
  double weights = 0;  // of all classes
  double divisor = 1;  // of a mean: the weights of the targets that count
};

class ClassLossBackwardPlan final : public Plan {
 public:
  explicit ClassLossBackwardPlan(const Problem& problem)
      : job_(class_loss_job(problem)),
        logits_(problem.op == OpId::cross_entropy),
        probabilities_(is_floating(problem.inputs[1].dtype)),
        has_weight_(problem.inputs.size() > 3),
        ignore_index_(problem.attributes.integer("ignore_index")),
        none_(problem.attributes.choice("reduction") == "none"),
        mean_(problem.attributes.choice("reduction") == "mean"),
        threads_(threads_for(problem)),
        load_target_(probabilities_ ? nullptr : integer_loader_of(problem.inputs[1].dtype)),
        load_gradient_(loader_of(problem.inputs.back().dtype)),
        store_(storer_of(problem.outputs[0].dtype)),
        out_bytes_(static_cast<std::int64_t>(size_of(problem.outputs[0].dtype))) {}

  Status run(const RunArguments& arguments) const override {
    if (!probabilities_) {
      const Status status = check_targets(*arguments.inputs[1], job_.lines.length, ignore_index_, threads_);
      if (!status.ok()) return status;
    }
    if (job_.lines.length == 0 || job_.lines.count() == 0) return {};
    const ClassGradient gradient = gradient_of(arguments);
    logits_ ? all_units(gradient, arguments) : all_picks(gradient, arguments);
    return {};
  }

 private:
  ClassGradient gradient_of(const RunArguments& arguments) const {
    ClassGradient gradient = {job_, static_cast<double>(job_.lines.length), 1};
    if (has_weight_) {
      gradient.job.weight = class_weights(*arguments.inputs[2], arguments.workspace);
      gradient.weights = 0;
      for (std::int64_t c = 0; c < job_.lines.length; ++c) {
        gradient.weights += static_cast<double>(gradient.job.weight[c]);
      }
    }
    if (mean_) gradient.divisor = counted(gradient.job, arguments);
    return gradient;
  }

  /// The class of a position, or -1.
  std::int64_t target(const RunArguments& arguments, std::int64_t position) const {
    const std::int64_t target = load_target_(arguments.inputs[1]->as<const std::byte>(), position);
    return target == ignore_index_ ? -1 : target;
  }

  double counted(const ClassLossJob& job, const RunArguments& arguments) const {
    if (probabilities_) return static_cast<double>(job.lines.count());
    double sum = 0;
    for (std::int64_t i = 0; i < job.lines.count(); ++i) {
      const std::int64_t at = target(arguments, i);
      if (at >= 0) sum += job.weight == nullptr ? 1 : static_cast<double>(job.weight[at]);
    }
    return sum;
  }

  float position_gradient(const ClassGradient& gradient, const RunArguments& arguments, std::int64_t i) const {
    const double g = load_gradient_(arguments.inputs.back()->as<const std::byte>(), none_ ? i : 0);
    return static_cast<float>(g / gradient.divisor);
  }

  void all_units(const ClassGradient& gradient, const RunArguments& arguments) const {
    constexpr std::int64_t picoseconds = 700;  // about what a score takes
    const std::int64_t count = job_.lines.count();
    parallel_for(count, lines_per_thread(job_.lines.length, picoseconds), threads_,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; i += unit_positions) {
                     unit(gradient, arguments, i, std::min(end, i + unit_positions));
                   }
                 });
  }

  void unit(const ClassGradient& gradient, const RunArguments& arguments, std::int64_t begin, std::int64_t end) const {
    const void* scores = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    float gradients[unit_positions];
    std::int64_t targets[unit_positions];
    for (std::int64_t i = begin; i < end; ++i) {
      gradients[i - begin] = position_gradient(gradient, arguments, i);
      if (!probabilities_) targets[i - begin] = target(arguments, i);
    }
    if (probabilities_) {
      const void* probabilities = arguments.inputs[1]->as<const std::byte>();
      cross_entropy_gradient_of_probabilities(gradient.job, scores, probabilities, gradients, begin, end, out);
    } else {
      cross_entropy_gradient_of_classes(gradient.job, gradient.weights, scores, targets, gradients, begin, end, out);
    }
  }

  /// nll_loss: zeros, but for the targets' own.
  void all_picks(const ClassGradient& gradient, const RunArguments& arguments) const {
    constexpr std::int64_t picoseconds = 100;
    const Lines& lines = job_.lines;
    const std::int64_t plane = lines.length * lines.inner;
    auto* out = arguments.outputs[0]->as<std::byte>();
    parallel_for(lines.outer, lines_per_thread(plane, picoseconds), threads_,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::memset(out + begin * plane * out_bytes_, 0,
                               static_cast<std::size_t>((end - begin) * plane * out_bytes_));
                   for (std::int64_t i = begin * lines.inner; i < end * lines.inner; ++i) {
                     pick(gradient, arguments, i, out);
                   }
                 });
  }

  void pick(const ClassGradient& gradient, const RunArguments& arguments, std::int64_t position, void* out) const {
    const std::int64_t at = target(arguments, position), inner = job_.lines.inner;
    if (at < 0) return;
    const float weight = gradient.job.weight == nullptr ? 1.0f : gradient.job.weight[at];
    const float value = -weight * position_gradient(gradient, arguments, position);
    const std::int64_t offset = (position / inner * job_.lines.length + at) * inner + position % inner;
    store_(out, offset, static_cast<double>(value));
  }

  ClassLossJob job_;
  bool logits_, probabilities_, has_weight_;
  std::int64_t ignore_index_;
  bool none_, mean_;
  int threads_;
  LoadInteger load_target_;
  LoadElement load_gradient_;
  StoreElement store_;
  std::int64_t out_bytes_;
};

}  // namespace

Verdict supports_class_loss_backward(const Problem& problem) {
  if (const Verdict verdict = supports_class_inputs(problem); !verdict.supported) return verdict;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const Verdict few = is_at_most("classes", class_loss_job(problem).lines.length, most);
  if (!few.supported) return few;
  return is_same_dtype("output 0", problem.outputs[0].dtype, "the scores'", problem.inputs[0].dtype);
}

std::unique_ptr<const Plan> prepare_class_loss_backward_simd(const Problem& problem) {
  return std::make_unique<ClassLossBackwardPlan>(problem);
}

}  // namespace xpuruntime::cpu
