#include "backends/cuda/checks.h"

namespace xpuruntime::cuda {

Verdict first_refusal(std::initializer_list<Check> checks, const Problem& problem, const DeviceProfile& profile) {
  for (const Check check : checks) {
    if (Verdict verdict = check(problem, profile); !verdict.supported) return verdict;
  }
  return Verdict::yes();
}

Verdict has_code(const Problem&, const DeviceProfile& profile) {
  if (profile.compute_capability_major >= 8) return Verdict::yes();
  return Verdict::no("compute capability " + std::to_string(profile.compute_capability_major) + "." +
                     std::to_string(profile.compute_capability_minor) + " is below 8.0");
}

Verdict is_aligned(const Problem& problem, const DeviceProfile&) {
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) {
      if (spec.alignment < size_of(spec.dtype)) return Verdict::no("a tensor is not aligned to its elements");
    }
  }
  return Verdict::yes();
}

Verdict floats_only(const Problem& problem, const DeviceProfile&) {
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) {
      if (!is_floating(spec.dtype)) return refuse_dtype(spec.dtype);
    }
  }
  return Verdict::yes();
}

Verdict refuse_dtype(DataType dtype) { return Verdict::no("dtype " + std::string(to_string(dtype)) + " is not built"); }

Verdict refuse_over(const char* what, std::int64_t value, std::int64_t limit) {
  return Verdict::no(std::string(what) + " = " + std::to_string(value) + " is over " + std::to_string(limit));
}

}  // namespace xpuruntime::cuda
