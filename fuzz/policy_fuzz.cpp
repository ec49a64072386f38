#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"
#include "xpuruntime/select/policy.h"

namespace {

using xpuruntime::KernelPolicy;

std::optional<KernelPolicy> parsed(std::string_view json) {
  try {
    return KernelPolicy::from_json(json);
  } catch (const xpuruntime::Error&) {
    return {};
  }
}

}  // namespace

/// Any bytes are refused with an Error, or read as a policy that is sound, whose JSON reads back as an equal one, and
/// whose rules can be asked.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policy = parsed({reinterpret_cast<const char*>(data), size});
  if (!policy) return 0;
  policy->check();
  const std::string json = policy->to_json();
  const KernelPolicy again = KernelPolicy::from_json(json);
  if (again != *policy || again.to_json() != json) std::abort();
  static const xpuruntime::Problem problem = xpuruntime::parse_problem("matmul(bf16[1,64], bf16[64,64])");
  for (const xpuruntime::PolicyRule& rule : policy->rules) rule.matches(problem, {});
  return 0;
}
