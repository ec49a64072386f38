#include "runtime/revalidate.h"

#include <algorithm>
#include <cstdio>

#include "tune/contender.h"
#include "tune/reference.h"

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

std::string flaw_of(const KernelRegistry& registry, const Problem& problem, Contender& contender) {
  const std::string refusal =
      refusal_of(*contender.kernel, problem, registry.devices().profile(problem.device), contender.row.workspace_bytes);
  if (!refusal.empty()) return refusal;
  check_memory(registry.devices(), problem, true);
  const Operands operands = random_operands(registry.devices(), problem, seed);
  const Track track(registry, problem, operands);
  if (const Status prepared = track.prepare(contender); !prepared.ok()) return prepared.message();
  if (const Status ran = track.run(contender, 1); !ran.ok()) return ran.message();
  const Reference reference(registry, problem, operands, most_reference_work);
  if (!reference.skipped().empty()) return {};
  return flaw_of_numbers(reference.compare_with(operands.outputs(), {contender.kernel->name()}));
}

}  // namespace

std::string flaw_of_kernel(const KernelRegistry& registry, const Problem& problem, const std::string& kernel) {
  const KernelList kernels = registry.kernels(problem.op, problem.device.type);
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) { return k->name() == kernel; });
  if (found == kernels.end()) return "it is not here any more";
  Contender contender;
  contender.kernel = *found;
  try {
    return flaw_of(registry, problem, contender);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace xpuruntime
