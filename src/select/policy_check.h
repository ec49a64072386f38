#pragma once

#include <string>
#include <string_view>

#include "xpuruntime/select/policy.h"

namespace xpuruntime {

/// The dtype, which must be one that tensors of floats are stored in.
DataType checked_default(DataType dtype);

/// The policy in a text that was read from a file.
KernelPolicy policy_in_file(std::string_view text, const std::string& path);
/// The whole file.
std::string read_policy_text(const std::string& path);

}  // namespace xpuruntime
