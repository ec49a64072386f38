#include <cmath>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/norm/normalize.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t picoseconds = 150;  // about what an element takes

bool is_simple(double p) { return p == 0 || p == 1 || p == 2 || std::isinf(p); }

NormKind kind_of(double p) {
  if (std::isinf(p)) return NormKind::most;
  if (p == 2) return NormKind::two;
  return p == 1 ? NormKind::one : NormKind::count;
}

class NormalizePlan final : public Plan {
 public:
  explicit NormalizePlan(const Problem& problem)
      : job_{problem.inputs[0].dtype, kind_of(problem.attributes.real("p")),
             lines_along(problem.inputs[0], problem.attributes.integer("dim")), problem.attributes.real("eps")},
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const void* x = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    if (job_.lines.length == 0) return {};
    parallel_for(job_.lines.count(), lines_per_thread(job_.lines.length, picoseconds), threads_,
                 [&](std::int64_t begin, std::int64_t end) { normalize_lines(job_, x, out, begin, end); });
    return {};
  }

 private:
  NormalizeJob job_;
  int threads_;
};

}  // namespace

Verdict supports_normalize_simd(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = supports_lines_in_any_order(problem); !verdict.supported) return verdict;
  const double p = problem.attributes.real("p");
  if (is_simple(p)) return Verdict::yes();
  return Verdict::no("p = " + std::to_string(p) + " needs powers, and this kernel takes 0, 1, 2 and infinity");
}

std::unique_ptr<const Plan> prepare_normalize_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<NormalizePlan>(problem);
}

}  // namespace xpuruntime::cpu
