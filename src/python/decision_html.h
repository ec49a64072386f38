#pragma once

#include <string>

#include "xpuruntime/select/decision.h"

namespace xpuruntime::python {

/// A table for notebooks: one row per candidate, what was chosen on top of it. Every text in it is escaped.
std::string to_html(const Decision& decision);

}  // namespace xpuruntime::python
