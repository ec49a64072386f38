#include "parsed.h"
#include "xpuruntime/select/policy.h"

/// Any bytes are refused with an Error, or read as a policy that is sound, whose JSON reads back as an equal one, and
/// whose rules can be asked.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policy = round_trip<xpuruntime::KernelPolicy>(data, size);
  if (!policy) return 0;
  policy->check();
  static const xpuruntime::Problem problem = xpuruntime::parse_problem("matmul(bf16[1,64], bf16[64,64])");
  for (const xpuruntime::PolicyRule& rule : policy->rules) rule.matches(problem, {});
  return 0;
}
