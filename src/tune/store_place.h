#pragma once

#include <sys/stat.h>

#include <string>

#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// Refuses the name of a file that SQLite keeps beside a store, before anything is opened: what it holds is lost when
/// that store is written, and closing it drops the locks of that store in this process.
void check_store_name(const std::string& path);

/// Makes the folders that are missing, for this user alone.
void make_store_folder(const std::string& path);

/// Refuses a file or folder that other users than root may change; `what` is "the folder" or "the file".
void check_owner_and_mode(const struct stat& of, const std::string& what, const std::string& path);

/// Refuses what is no regular file, and a file or folder that other users than root may change: they could put another
/// store or log in its place. A file that is missing is not refused.
void check_store_place(const std::string& path, StoreMode mode);

}  // namespace xpuruntime
