#pragma once

#include <utility>

#include "cache/disk_cache.h"

namespace xpuruntime::opencl {

/// What drivers compiled, and what became of trying them.
class DiskCache : public xpuruntime::DiskCache {
 public:
  explicit DiskCache(std::string folder = default_folder(), std::uint64_t max_bytes = std::uint64_t{256} << 20)
      : xpuruntime::DiskCache(std::move(folder), max_bytes) {}

  /// XPURUNTIME_OPENCL_CACHE, else xpuruntime/opencl in the user's cache folder; empty where nothing says where.
  static std::string default_folder() {
    return xpuruntime::DiskCache::default_folder("XPURUNTIME_OPENCL_CACHE", "opencl");
  }
};

}  // namespace xpuruntime::opencl
