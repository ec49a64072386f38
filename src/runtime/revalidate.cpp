#include <algorithm>
#include <cstdio>

#include "runtime/runtime_parts.h"
#include "tune/contender.h"
#include "tune/probe.h"
#include "tune/reference.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

constexpr double most_reference_work = 2e8;  // some seconds
constexpr std::uint64_t seed = 1;

std::string flaw_of_numbers(const Check& check) {
  if (!check.skipped.empty() || check.within) return {};
  char text[96];
  std::snprintf(text, sizeof text, "its numbers are off by %.3g, and rounding explains %.3g", check.max_rel_error,
                check.tolerance);
  return text;
}

/// Somebody else's kernel runs in a process of its own first, where that can be done.
std::string failure_in_child(const KernelRegistry& registry, const Problem& problem, const Contender& contender,
                             const Operands& operands, const Track& track) {
  if (!contender.third_party || problem.device.type != DeviceType::cpu) return {};
  const auto lease =
      registry.devices().workspace(problem.device).acquire(contender.row.workspace_bytes.value_or(0), {});
  const ProbeResult probed = probe_in_child(*contender.kernel, problem, track.context(), operands, lease.data(),
                                            {.token = contender.row.variant});
  return probed.failure.empty() ? probed.status.message() : probed.failure;
}

std::string flaw_of(const KernelRegistry& registry, const Problem& problem, Contender& contender) {
  contender.refuse_unless_runs(problem, registry.devices().profile(problem.device),
                               registry.kernels(OpId::copy, problem.device.type));
  if (!contender.usable()) return contender.row.reason;
  check_memory(registry.devices(), problem, true);
  const Operands operands = random_operands(registry.devices(), problem, seed);
  const Track track(registry, problem, operands);
  if (const std::string failure = failure_in_child(registry, problem, contender, operands, track); !failure.empty()) {
    return failure;
  }
  if (const Status prepared = track.prepare(contender); !prepared.ok()) return prepared.message();
  if (const Status ran = track.run(contender, 1); !ran.ok()) return ran.message();
  const Reference reference(registry, problem, operands, most_reference_work);
  if (!reference.skipped().empty()) return "its numbers could not be checked: " + reference.skipped();
  return flaw_of_numbers(reference.compare_with(operands.outputs(), {contender.kernel->name()}));
}

}  // namespace

std::string flaw_of_kernel(const KernelRegistry& registry, const Problem& problem, const std::string& kernel,
                           const std::string& plan) {
  const KernelList kernels = registry.kernels(problem.op, problem.device.type);
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k->name() == kernel; });
  if (found == kernels.end()) return "it is no longer available";
  Contender contender;
  contender.kernel = *found;
  contender.row.variant = plan;
  contender.third_party = registry.origin(**found) == KernelOrigin::third_party;
  try {
    return flaw_of(registry, problem, contender);
  } catch (...) {
    return exception_text();
  }
}

}  // namespace xpuruntime
