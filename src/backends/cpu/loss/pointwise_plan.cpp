#include <algorithm>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/loss/kernels.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

// Elements whose losses are summed at once: the units' sums are added in their order.
constexpr std::int64_t unit_elements = 8192;
// What a thread must get to be worth waking.
constexpr std::int64_t units_per_thread = 2;

std::int64_t units_of(const Problem& problem) {
  return (element_count(problem.inputs[0]) + unit_elements - 1) / unit_elements;
}

class PointwiseLossPlan final : public Plan {
 public:
  explicit PointwiseLossPlan(const Problem& problem)
      : terms_(pointwise_loss_terms(problem)),
        dtype_(problem.inputs[0].dtype),
        count_(element_count(problem.inputs[0])),
        units_(units_of(problem)),
        none_(problem.attributes.choice("reduction") == "none"),
        threads_(threads_for(problem)),
        store_(storer_of(problem.outputs[0].dtype)) {}

  Status run(const RunArguments& arguments) const override {
    const void* x = arguments.inputs[0]->as<const std::byte>();
    const void* target = arguments.inputs[1]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    auto* sums = static_cast<float*>(arguments.workspace);
    parallel_for(units_, units_per_thread, threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t u = begin; u < end; ++u) {
        const std::int64_t offset = u * unit_elements, n = std::min(unit_elements, count_ - offset);
        const float sum = pointwise_losses(terms_, dtype_, x, target, offset, n, none_ ? out : nullptr);
        if (!none_) sums[u] = sum;
      }
    });
    if (none_) return {};
    double total = 0;
    for (std::int64_t u = 0; u < units_; ++u) total += static_cast<double>(sums[u]);
    store_(out, 0, total / terms_.divisor);
    return {};
  }

 private:
  PointwiseLossTerms terms_;
  DataType dtype_;
  std::int64_t count_;
  std::int64_t units_;
  bool none_;
  int threads_;
  StoreElement store_;
};

}  // namespace

Verdict supports_pointwise_loss_simd(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = is_contiguous(problem); !verdict.supported) return verdict;
  if (problem.inputs[0].shape != problem.inputs[1].shape) return Verdict::no("the inputs are broadcast");
  const DataType in = problem.inputs[0].dtype, target = problem.inputs[1].dtype, out = problem.outputs[0].dtype;
  const Verdict alike = is_same_dtype("input 1", target, "the input's", in);
  const bool none = problem.attributes.choice("reduction") == "none";
  return none && alike.supported ? is_same_dtype("output 0", out, "the input's", in) : alike;
}

std::uint64_t workspace_pointwise_loss_simd(const Problem& problem, const DeviceProfile&) {
  if (problem.attributes.choice("reduction") == "none") return 0;
  return static_cast<std::uint64_t>(units_of(problem)) * sizeof(float);
}

std::unique_ptr<const Plan> prepare_pointwise_loss_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<PointwiseLossPlan>(problem);
}

}  // namespace xpuruntime::cpu
