#pragma once

#include <string_view>

namespace xpuruntime {

// The files of src/runtime/report, which the build puts into the library.
extern const std::string_view report_html;
extern const std::string_view report_css;
extern const std::string_view report_js;

}  // namespace xpuruntime
