#include "backends/cpu/base/supports.h"

#include <algorithm>
#include <string>

namespace xpuruntime::cpu {
namespace {

/// Asks `check(spec, name)` for each tensor; the first refusal stands.
template <class Check>
Verdict each_tensor(const Problem& problem, const Check& check) {
  for (std::size_t i = 0; i < problem.inputs.size() + problem.outputs.size(); ++i) {
    const bool is_input = i < problem.inputs.size();
    const std::size_t index = is_input ? i : i - problem.inputs.size();
    const std::string name = (is_input ? "input " : "output ") + std::to_string(index);
    const TensorSpec& spec = is_input ? problem.inputs[index] : problem.outputs[index];
    if (const Verdict verdict = check(spec, name); !verdict.supported) return verdict;
  }
  return Verdict::yes();
}

}  // namespace

Verdict refuse_dtype(std::string_view which, DataType dtype, std::string_view takes) {
  return Verdict::no(std::string(which) + " is " + std::string(to_string(dtype)) + ", and this kernel takes " +
                     std::string(takes));
}

Verdict supports_aligned(const Problem& problem, const DeviceProfile&) {
  return each_tensor(problem, [](const TensorSpec& spec, const std::string& name) {
    const bool aligned = spec.alignment >= std::min<std::size_t>(size_of(spec.dtype), 8);
    return aligned ? Verdict::yes() : Verdict::no(name + " is not aligned to its element size; copy it first");
  });
}

Verdict supports_fast_floats(const Problem& problem) {
  if (const Verdict verdict = supports_aligned(problem, {}); !verdict.supported) return verdict;
  return each_tensor(problem, [](const TensorSpec& spec, const std::string& name) {
    return is_fast_float(spec.dtype) ? Verdict::yes() : refuse_dtype(name, spec.dtype, "f32, f16 and bf16");
  });
}

Verdict supports_dense_floats(const Problem& problem) {
  if (const Verdict verdict = supports_fast_floats(problem); !verdict.supported) return verdict;
  return each_tensor(problem, [](const TensorSpec& spec, const std::string& name) {
    return spec.contiguous ? Verdict::yes() : Verdict::no(name + " is not contiguous");
  });
}

}  // namespace xpuruntime::cpu
