#pragma once

#include <string>

#include "cache/disk_cache.h"

namespace xpuruntime {

/// SHA-256 of a file's bytes. `kept` keeps it by what the system says of the file: where it lies, its size, and when it
/// was last written and changed, so that a file that nobody has touched is not read again.
std::string content_of_file(const std::string& path, const DiskCache& kept);

}  // namespace xpuruntime
