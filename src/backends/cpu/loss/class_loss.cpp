#include "backends/cpu/loss/class_loss.h"

#include <atomic>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

// Below this many a thread is not worth waking.
constexpr std::int64_t targets_per_thread = 32768;

bool is_bad(std::int64_t target, std::int64_t classes, std::int64_t ignore_index) {
  return static_cast<std::uint64_t>(target) >= static_cast<std::uint64_t>(classes) && target != ignore_index;
}

/// Whether all are good; says nothing of which is not, so that the loop has no way out in its middle.
template <class Index>
bool all_good(const Index* targets, std::int64_t count, std::int64_t classes, std::int64_t ignore_index, int threads) {
  std::atomic<bool> good = true;
  parallel_for(count, targets_per_thread, threads, [&](std::int64_t begin, std::int64_t end) {
    bool bad = false;
    for (std::int64_t i = begin; i < end; ++i) bad |= is_bad(targets[i], classes, ignore_index);
    if (bad) good.store(false, std::memory_order_relaxed);
  });
  return good;
}

std::string position_text(std::int64_t index, const Dims& shape) {
  Dims position = shape;
  for (std::size_t i = shape.size(); i-- > 0;) {
    position[i] = index % shape[i];
    index /= shape[i];
  }
  return to_string(position);
}

Status bad_target(std::int64_t index, std::int64_t target, const Dims& shape, std::int64_t classes,
                  std::int64_t ignore_index) {
  return {ErrorCode::invalid_argument, "target " + position_text(index, shape) + " is " + std::to_string(target) +
                                           ", not one of the " + std::to_string(classes) +
                                           " classes from 0 and not the ignore_index " + std::to_string(ignore_index) +
                                           "; give a class or the ignore_index"};
}

/// The class weights of a problem of either direction; null where not given.
const TensorSpec* weight_of(const Problem& problem) {
  const std::size_t inputs = problem.inputs.size() - (problem.direction == Direction::backward ? 1 : 0);
  return inputs > 2 ? &problem.inputs[2] : nullptr;
}

}  // namespace

TensorSpec with_class_dim(const TensorSpec& spec, const TensorSpec& scores) {
  TensorSpec full = spec;
  full.shape = full.strides = Dims::filled(scores.shape.size(), 1);
  for (std::size_t i = 0, j = 0; i < scores.shape.size(); ++i) {
    if (i == class_dim(scores)) continue;
    full.shape[i] = spec.shape[j];
    full.strides[i] = spec.strides[j++];
  }
  return full;
}

Status check_targets(const Tensor& targets, std::int64_t classes, std::int64_t ignore_index, int threads) {
  const TensorSpec& spec = targets.spec();
  const std::int64_t count = element_count(spec);
  if (spec.contiguous && spec.dtype == DataType::int64 &&
      all_good(targets.as<const std::int64_t>(), count, classes, ignore_index, threads)) {
    return {};
  }
  if (spec.contiguous && spec.dtype == DataType::int32 &&
      all_good(targets.as<const std::int32_t>(), count, classes, ignore_index, threads)) {
    return {};
  }
  const LoadInteger load = integer_loader_of(spec.dtype);
  Walk<1> walk(spec.shape, spec);
  for (std::int64_t i = 0; walk.more(); ++i, walk.next()) {
    const std::int64_t target = load(targets.as<const std::byte>(), walk.offset(0));
    if (is_bad(target, classes, ignore_index)) return bad_target(i, target, spec.shape, classes, ignore_index);
  }
  return {};
}

Verdict supports_class_inputs(const Problem& problem) {
  if (const Verdict verdict = is_contiguous(problem); !verdict.supported) return verdict;
  const TensorSpec* weight = weight_of(problem);
  if (weight != nullptr && !fast_floats.contains(weight->dtype)) {
    return refuse_dtype("input 2", weight->dtype, to_string(fast_floats));
  }
  const DataType scores = problem.inputs[0].dtype, targets = problem.inputs[1].dtype;
  return is_floating(targets) ? is_same_dtype("input 1", targets, "the scores'", scores) : Verdict::yes();
}

ClassLossJob class_loss_job(const Problem& problem) {
  const TensorSpec& scores = problem.inputs[0];
  ClassLossJob job;
  job.dtype = scores.dtype;
  job.lines = lines_along(scores.shape, static_cast<std::int64_t>(class_dim(scores)));
  if (problem.op == OpId::cross_entropy) job.smoothing = problem.attributes.real("label_smoothing");
  return job;
}

std::uint64_t class_weight_bytes(const Problem& problem) {
  const TensorSpec* weight = weight_of(problem);
  if (weight == nullptr || weight->dtype == DataType::float32) return 0;
  return static_cast<std::uint64_t>(element_count(*weight)) * sizeof(float);
}

const float* class_weights(const Tensor& weights, void* space) {
  if (weights.dtype() == DataType::float32) return weights.as<const float>();
  auto* widened = static_cast<float*>(space);
  const LoadElement load = loader_of(weights.dtype());
  for (std::int64_t c = 0; c < element_count(weights.spec()); ++c) {
    widened[c] = static_cast<float>(load(weights.as<const std::byte>(), c));
  }
  return widened;
}

}  // namespace xpuruntime::cpu
