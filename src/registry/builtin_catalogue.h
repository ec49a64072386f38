#pragma once

#include <span>

#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime {

/// What CatalogueEntry::needs says of kernels that run wherever the library does.
inline constexpr std::string_view needs_nothing = "nothing more";

/// Every row of every backend of this library, built or not, by op. Defined in the runtime layer, which names the
/// backends.
std::span<const CatalogueEntry> builtin_catalogue();

}  // namespace xpuruntime
