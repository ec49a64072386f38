#pragma once

#include <string_view>

namespace xpuruntime {

/// Whether a text is an object with a field that only execution policies have; not whether it is a right one.
bool is_execution_policy(std::string_view text);

}  // namespace xpuruntime
