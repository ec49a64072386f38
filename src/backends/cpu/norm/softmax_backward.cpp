#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/norm/softmax.h"

namespace xpuruntime::cpu {
namespace {

class SoftmaxBackwardPlan final : public Plan {
 public:
  explicit SoftmaxBackwardPlan(const Problem& problem) : job_(softmax_job(problem)), threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    constexpr std::int64_t picoseconds = 700;  // about what an element takes
    const void* x = arguments.inputs[0]->as<const std::byte>();
    const void* g = arguments.inputs[1]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    if (job_.lines.length == 0) return {};
    parallel_for(job_.lines.count(), lines_per_thread(job_.lines.length, picoseconds), threads_,
                 [&](std::int64_t begin, std::int64_t end) { softmax_gradient(job_, x, g, out, begin, end); });
    return {};
  }

 private:
  SoftmaxJob job_;
  int threads_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_softmax_backward_simd(const Problem& problem) {
  return std::make_unique<SoftmaxBackwardPlan>(problem);
}

}  // namespace xpuruntime::cpu
