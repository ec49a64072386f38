#pragma once

#include <string>

#include "cache/disk_cache.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime {

/// SHA-256 of a file's bytes. `kept` keeps it by the file's identity, so that a file that nobody has touched is not
/// read again.
std::string content_of_file(const std::string& path, const DiskCache& kept);

/// Throws io_error where a model's files are no longer those that were read: an engine that reads them now would run
/// another model.
void check_unchanged(const Model& model);

}  // namespace xpuruntime
