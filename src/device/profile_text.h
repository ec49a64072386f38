#pragma once

#include "core/json_text.h"
#include "xpuruntime/device/profile.h"

namespace xpuruntime {

/// A profile that was written as JSON; errors name the source.
DeviceProfile parse_profile(std::string_view text, const JsonSource& source);

}  // namespace xpuruntime
