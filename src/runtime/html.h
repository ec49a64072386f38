#pragma once

#include <string>
#include <string_view>

namespace xpuruntime {

/// For a place between tags or within double quotes.
std::string escape_html(std::string_view text);

}  // namespace xpuruntime
