#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xpuruntime {

/// Byte strings in files of one folder, by keys of hex digits. Shared by processes: an entry is written beside its
/// place and renamed, and checked when it is read; a damaged one is removed and counts as missing. What was used
/// longest ago goes when the folder is over its limit. A folder that cannot be used is a cache that keeps nothing.
class DiskCache {
 public:
  DiskCache(std::string folder, std::uint64_t max_bytes);

  std::optional<std::string> get(const std::string& key) const;
  void put(const std::string& key, std::string_view value) const;
  void remove(const std::string& key) const;

  struct Entry {
    std::string key = {};
    std::uint64_t bytes = 0;
    std::int64_t used = 0;  // seconds since 1970

    bool operator==(const Entry&) const = default;
  };
  /// What was used last first.
  std::vector<Entry> entries() const;
  /// Removes all; how many went.
  std::size_t clear() const;

  /// What this variable names, else xpuruntime/`name` in the user's cache folder; empty where nothing says where.
  static std::string default_folder(const char* variable, const std::string& name);

 private:
  std::string path_of(const std::string& key) const;
  void trim() const;

  std::string folder_;
  std::uint64_t max_bytes_;
};

}  // namespace xpuruntime
