#pragma once

#include <string>

#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// Makes the folders that are missing, for this user alone.
void make_store_folder(const std::string& path);

/// Refuses what is no regular file, and a file or folder that other users than root may change: they could put another
/// store or log in its place. A file that is missing is not refused.
void check_store_place(const std::string& path, StoreMode mode);

}  // namespace xpuruntime
