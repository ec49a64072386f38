#pragma once

#include <string>

#include "core/json_fields.h"
#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

/// A kernel's name or a list of names, each of which some backend must have for the op.
std::vector<std::string> read_kernels(const JsonValue& from, OpId op);

void read_value(PolicyRule& to, const JsonValue& from);
Json write_value(const PolicyRule& rule);

}  // namespace xpuruntime
