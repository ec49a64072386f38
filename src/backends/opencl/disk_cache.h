#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xpuruntime::opencl {

/// Byte strings in files of one folder, by keys of hex digits. Shared by processes: an entry is written beside its
/// place and renamed, and checked when it is read; a damaged one is removed and counts as missing. What was used
/// longest ago goes when the folder is over its limit. A folder that cannot be used is a cache that keeps nothing.
class DiskCache {
 public:
  explicit DiskCache(std::string folder = default_folder(), std::uint64_t max_bytes = std::uint64_t{256} << 20);

  std::optional<std::string> get(const std::string& key) const;
  void put(const std::string& key, std::string_view value) const;
  void remove(const std::string& key) const;

  /// XPURUNTIME_OPENCL_CACHE, else xpuruntime/opencl in the user's cache folder; empty where nothing says where.
  static std::string default_folder();

 private:
  std::string path_of(const std::string& key) const;
  void trim() const;

  std::string folder_;
  std::uint64_t max_bytes_;
};

}  // namespace xpuruntime::opencl
