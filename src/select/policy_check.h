#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json_text.h"
#include "xpuruntime/select/policy.h"

namespace xpuruntime {

/// The dtype, which must be one that tensors of floats are stored in.
DataType checked_default(DataType dtype);

/// What it says of kernels: neither limits nor precision.
KernelPolicy kernel_choices(const KernelPolicy& policy);

/// The policy as JSON. `normal`: ops and strategies by their own names, so that what means the same reads the same; a
/// file has the names that were given and the strategy's number, which other readers of such files expect.
Json policy_to_json(const KernelPolicy& policy, bool normal);

/// The fields that hold one value each.
std::vector<std::string_view> single_policy_fields();

/// A policy out of values that a program gave: errors name the field, but no place in a text, since there is none.
KernelPolicy policy_from_values(std::string_view json);

/// The policy in a text that was read from a file.
KernelPolicy policy_in_file(std::string_view text, const std::string& path);
/// The whole file.
std::string read_policy_text(const std::string& path);

}  // namespace xpuruntime
