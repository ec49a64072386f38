#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "xpuruntime/select/policy.h"

namespace xpuruntime {

/// One thing that a policy says, or could say.
struct PolicyField {
  std::string field = {};  // "preferences.matmul", "rules[0]", "threads"
  std::string value = {};  // as JSON in one line; empty where it is not set
  std::size_t line = 0;    // of the file, from 1; 0 where it is not set or there is no file
  std::size_t column = 0;

  bool operator==(const PolicyField&) const = default;
};

/// Everything that a policy says, in its normal form, and the single fields that it leaves open.
std::vector<PolicyField> policy_fields(const KernelPolicy& policy);
/// The same of a file, with the place of each.
std::vector<PolicyField> policy_fields_of_file(const std::string& path);

/// What one policy says otherwise than another. A rule that was added or removed shifts the others, which did not
/// change.
struct PolicyChange {
  std::string field = {};   // a rule's number is that in `after`, or of one that was removed, in `before`
  std::string before = {};  // as JSON; empty where it was not there
  std::string after = {};

  bool operator==(const PolicyChange&) const = default;
};
std::vector<PolicyChange> diff_policies(const KernelPolicy& before, const KernelPolicy& after);

}  // namespace xpuruntime
