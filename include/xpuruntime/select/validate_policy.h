#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/select/policy.h"

namespace xpuruntime {

/// How bad a finding is: calls will fail, something in the policy has no effect, or a remark.
enum class Severity : std::uint8_t { error, warning, note };
std::string_view to_string(Severity severity);

/// Something about a policy that its author may not have meant.
struct PolicyFinding {
  Severity severity = Severity::note;
  std::string field = {};  // "rules[1].use", with the op's canonical name
  std::string text = {};
  std::size_t line = 0;  // of the file, from 1; 0 where there is no file
  std::size_t column = 0;

  bool operator==(const PolicyFinding&) const = default;
};

/// What will not work as written on a device that is here, in the order of the policy's fields: kernels that never run
/// there, rules that never match, rules that others hide, precisions that no kernel offers. Empty if no problems were
/// found. A policy that check refuses is an error.
std::vector<PolicyFinding> validate_policy(const KernelPolicy& policy, const KernelRegistry& registry, Device device);

/// Loads a file and validates it; findings then have a line and a column.
std::vector<PolicyFinding> validate_policy_file(const std::string& path, const KernelRegistry& registry, Device device);

}  // namespace xpuruntime
