#include <algorithm>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/loss/class_loss.h"
#include "backends/cpu/loss/kernels.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t picoseconds = 400;       // about what a score takes
constexpr std::int64_t nll_picoseconds = 5000;  // a target's score is seldom in the cache
// The most positions, and about the most scores, whose losses are summed at once.
constexpr std::int64_t unit_positions = 256;
constexpr std::int64_t unit_scores = 65536;

/// A unit's part of the sum and of what the mean divides by.
struct Partial {
  double loss = 0;
  double weight = 0;
};

std::int64_t positions_of_unit(const Problem& problem, const ClassLossJob& job) {
  const std::int64_t scores = problem.op == OpId::cross_entropy ? std::max<std::int64_t>(1, job.lines.length) : 1;
  return std::clamp<std::int64_t>(unit_scores / scores, 1, unit_positions);
}

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/// cross_entropy and nll_loss in units of positions; the units' sums are added in their order.
class ClassLossPlan final : public Plan {
 public:
  explicit ClassLossPlan(const Problem& problem)
      : job_(class_loss_job(problem)),
        logits_(problem.op == OpId::cross_entropy),
        probabilities_(is_floating(problem.inputs[1].dtype)),
        ignore_index_(problem.attributes.integer("ignore_index")),
        none_(problem.attributes.choice("reduction") == "none"),
        mean_(problem.attributes.choice("reduction") == "mean"),
        unit_(positions_of_unit(problem, job_)),
        units_((job_.lines.count() + unit_ - 1) / unit_),
        threads_(threads_for(problem)),
        store_(storer_of(problem.outputs[0].dtype)),
        load_score_(loader_of(problem.inputs[0].dtype)) {}

  Status run(const RunArguments& arguments) const override {
    if (!probabilities_) {
      const Status status = check_targets(*arguments.inputs[1], job_.lines.length, ignore_index_, threads_);
      if (!status.ok()) return status;
    }
    auto* partials = static_cast<Partial*>(arguments.workspace);
    ClassLossJob job = job_;
    if (arguments.inputs.size() > 2) {
      auto* behind =
          reinterpret_cast<std::byte*>(partials) + padded(static_cast<std::uint64_t>(units_) * sizeof(Partial));
      job.weight = class_weights(*arguments.inputs[2], behind);
    }
    const std::int64_t cost = logits_ ? picoseconds * std::max<std::int64_t>(8, job.lines.length) : nll_picoseconds;
    const std::int64_t grain = 10'000'000 / (cost * unit_) + 1;
    parallel_for(units_, grain, threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t u = begin; u < end; ++u) partials[u] = run_unit(job, arguments, u);
    });
    if (!none_) finish(arguments, partials);
    return {};
  }

 private:
  Partial run_unit(const ClassLossJob& job, const RunArguments& arguments, std::int64_t unit) const {
    const std::int64_t begin = unit * unit_, end = std::min(job.lines.count(), begin + unit_);
    float losses[unit_positions];
    Partial sum;
    const void* scores = arguments.inputs[0]->as<const std::byte>();
    if (probabilities_) {
      cross_entropy_of_probabilities(job, scores, arguments.inputs[1]->as<const std::byte>(), begin, end, losses);
      sum.weight = static_cast<double>(end - begin);
    } else {
      std::int64_t targets[unit_positions];
      sum.weight = load_targets(job, *arguments.inputs[1], begin, end, targets);
      if (logits_) {
        cross_entropy_of_classes(job, scores, targets, begin, end, losses);
      } else {
        pick(job, scores, targets, begin, end, losses);
      }
    }
    if (none_) {
      void* out = arguments.outputs[0]->as<std::byte>();
      for (std::int64_t i = begin; i < end; ++i) store_(out, i, static_cast<double>(losses[i - begin]));
    }
    sum.loss = total(losses, end - begin);
    return sum;
  }

  /// In four chains, as one would wait for each addition.
  static double total(const float* values, std::int64_t count) {
    double sums[4] = {};
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
      for (std::int64_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(values[i + k]);
    }
    for (; i < count; ++i) sums[0] += static_cast<double>(values[i]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  /// Fills in -1 for those that do not count; gives the sum of the weights of the others.
  template <class Index>
  double load_targets(const ClassLossJob& job, const Index* from, std::int64_t count, std::int64_t* targets) const {
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const bool counts = from[i] != ignore_index_;
      targets[i] = counts ? from[i] : -1;
      counted += counts ? 1 : 0;
    }
    if (job.weight == nullptr) return static_cast<double>(counted);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += targets[i] < 0 ? 0 : static_cast<double>(job.weight[targets[i]]);
    return sum;
  }

  double load_targets(const ClassLossJob& job, const Tensor& tensor, std::int64_t begin, std::int64_t end,
                      std::int64_t* targets) const {
    if (tensor.dtype() == DataType::int64) {
      return load_targets(job, tensor.as<const std::int64_t>() + begin, end - begin, targets);
    }
    return load_targets(job, tensor.as<const std::int32_t>() + begin, end - begin, targets);
  }

  void pick(const ClassLossJob& job, const void* scores, const std::int64_t* targets, std::int64_t begin,
            std::int64_t end, float* losses) const {
    if (job.dtype == DataType::float32) {
      const auto* data = static_cast<const float*>(scores);
      pick(job, targets, begin, end, losses, [data](std::int64_t offset) { return data[offset]; });
    } else {
      pick(job, targets, begin, end, losses,
           [this, scores](std::int64_t offset) { return static_cast<float>(load_score_(scores, offset)); });
    }
  }

  template <class Score>
  void pick(const ClassLossJob& job, const std::int64_t* targets, std::int64_t begin, std::int64_t end, float* losses,
            const Score& score) const {
    const std::int64_t inner = job.lines.inner, classes = job.lines.length;
    std::int64_t row = begin / inner * classes * inner, at = begin % inner;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t target = targets[i - begin];
      float loss = 0;
      if (target >= 0) loss = -score(row + target * inner + at);
      losses[i - begin] = job.weight == nullptr || target < 0 ? loss : loss * job.weight[target];
      if (++at < inner) continue;
      at = 0;
      row += classes * inner;
    }
  }

  void finish(const RunArguments& arguments, const Partial* partials) const {
    Partial total;
    for (std::int64_t u = 0; u < units_; ++u) {
      total.loss += partials[u].loss;
      total.weight += partials[u].weight;
    }
    store_(arguments.outputs[0]->as<std::byte>(), 0, mean_ ? total.loss / total.weight : total.loss);
  }

  ClassLossJob job_;
  bool logits_;
  bool probabilities_;
  std::int64_t ignore_index_;
  bool none_;
  bool mean_;
  std::int64_t unit_;
  std::int64_t units_;
  int threads_;
  StoreElement store_;
  LoadElement load_score_;
};

}  // namespace

Verdict supports_class_loss_simd(const Problem& problem, const DeviceProfile&) {
  const bool backward = problem.direction == Direction::backward;
  return backward ? supports_class_loss_backward(problem) : supports_class_inputs(problem);
}

std::uint64_t workspace_class_loss_simd(const Problem& problem, const DeviceProfile&) {
  if (problem.direction == Direction::backward) return class_weight_bytes(problem);
  const ClassLossJob job = class_loss_job(problem);
  const std::int64_t unit = positions_of_unit(problem, job);
  const auto units = static_cast<std::uint64_t>((job.lines.count() + unit - 1) / unit);
  return padded(units * sizeof(Partial)) + class_weight_bytes(problem);
}

std::unique_ptr<const Plan> prepare_class_loss_simd(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_class_loss_backward_simd(problem);
  return std::make_unique<ClassLossPlan>(problem);
}

}  // namespace xpuruntime::cpu
