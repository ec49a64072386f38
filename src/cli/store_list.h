#pragma once

#include <string>

#include "cli/context.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime::cli {

/// What a store holds, with what each environment's entries are worth on this machine: a table, or a document.
std::string listed(const std::string& path, const StoreContents& contents, Context& context);

}  // namespace xpuruntime::cli
