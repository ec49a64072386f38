#include "cache/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "core/environment_variable.h"
#include "core/json_text.h"
#include "core/xxh64.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "xpuruntime cache 2\n";
constexpr std::string_view suffix = ".entry";
constexpr std::size_t checksum_bytes = 16;
// What a killed process left; nobody writes for that long.
constexpr std::chrono::hours abandoned{1};

std::string folder_variable(const char* name) {
  const char* value = environment_variable(name);
  return value == nullptr ? "" : value;
}

std::string checksum(std::string_view value) {
  char text[checksum_bytes + 1];
  std::snprintf(text, sizeof text, "%016" PRIx64, xxh64(std::as_bytes(std::span(value))));
  return text;
}

/// So many bytes from where the file stands; nothing where it has fewer.
std::optional<std::string> read_bytes(std::ifstream& file, std::uint64_t count) {
  std::string text(count, '\0');
  file.read(text.data(), static_cast<std::streamsize>(count));
  if (!file) return {};
  return text;
}

/// What an entry's file has; nothing where it is damaged, or a folder, whose end lies nowhere.
std::optional<std::string> value_in(std::ifstream& file, std::uint64_t most) {
  constexpr std::size_t header = magic.size() + checksum_bytes;
  file.seekg(0, std::ios::end);
  const auto bytes = static_cast<std::uint64_t>(static_cast<std::streamoff>(file.tellg()));  // -1 is too many
  if (bytes < header || bytes > most) return {};
  file.seekg(0);
  const auto start = read_bytes(file, header);
  if (!start || !start->starts_with(magic)) return {};
  auto value = read_bytes(file, bytes - header);
  if (!value || checksum(*value) != start->substr(magic.size())) return {};
  return value;
}

}  // namespace

std::string DiskCache::default_folder(const char* variable, const std::string& name) {
  if (std::string folder = folder_variable(variable); !folder.empty()) return folder;
  // The XDG specification has relative paths ignored.
  std::string cache = folder_variable("XDG_CACHE_HOME");
  if (!cache.starts_with("/")) {
    const std::string home = folder_variable("HOME");
    if (!home.starts_with("/")) return {};
    cache = home + "/.cache";
  }
  return cache + "/xpuruntime/" + name;
}

DiskCache::DiskCache(std::string folder, std::uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}

std::string DiskCache::path_of(const std::string& key) const { return folder_ + "/" + key + std::string(suffix); }

std::optional<std::string> DiskCache::get(const std::string& key) const {
  if (folder_.empty()) return {};
  std::error_code error;
  if (const auto kind = fs::status(path_of(key), error).type(); kind == fs::file_type::fifo)
    return {};  // it would wait
  std::ifstream file(path_of(key), std::ios::binary);
  if (!file) return {};
  std::optional<std::string> value = value_in(file, max_bytes_);
  if (!value) {
    remove(key);
    return {};
  }
  utimensat(AT_FDCWD, path_of(key).c_str(), nullptr, 0);  // used now
  return value;
}

void DiskCache::put(const std::string& key, std::string_view value) const {
  if (folder_.empty() || value.size() > max_bytes_ / 2) return;
  std::error_code ignored;
  if (fs::create_directories(folder_, ignored)) fs::permissions(folder_, fs::perms::owner_all, ignored);
  try {
    write_file_atomically(path_of(key), std::string(magic) + checksum(value) + std::string(value), {"DiskCache::put"});
  } catch (const Error&) {
    return;  // it is built again
  }
  trim();
}

void DiskCache::remove(const std::string& key) const { std::remove(path_of(key).c_str()); }

std::vector<DiskCache::Entry> DiskCache::entries() const {
  std::vector<Entry> found;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto used = at->last_write_time(gone);
    const auto bytes = gone ? 0 : at->file_size(gone);
    if (gone || at->path().extension() != suffix) continue;
    const auto since = fs::file_time_type::clock::to_sys(used).time_since_epoch();
    found.push_back(
        {at->path().stem().string(), bytes, std::chrono::duration_cast<std::chrono::seconds>(since).count()});
  }
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) {
    return std::pair(-a.used, std::string_view(a.key)) < std::pair(-b.used, std::string_view(b.key));
  });
  return found;
}

std::size_t DiskCache::clear() const {
  std::size_t removed = 0;
  for (const Entry& entry : entries()) removed += std::remove(path_of(entry.key).c_str()) == 0 ? 1 : 0;
  return removed;
}

void DiskCache::trim() const {
  struct Used {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Used> entries;
  std::uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // another process may be at the same
    const auto used = at->last_write_time(gone);
    const auto bytes = gone ? 0 : at->file_size(gone);
    if (gone) continue;
    const bool ours = at->path().filename().string().find(suffix) != std::string::npos;
    if (!ours) continue;
    if (at->path().extension() != suffix && fs::file_time_type::clock::now() - used > abandoned) {
      fs::remove(at->path(), gone);
    } else {
      entries.push_back({used, bytes, at->path()});
      total += bytes;
    }
  }
  if (total <= max_bytes_) return;
  // Some more than needed, so that the next ones need no search.
  std::sort(entries.begin(), entries.end(), [](const Used& a, const Used& b) { return a.used < b.used; });
  for (const Used& entry : entries) {
    if (total <= max_bytes_ / 4 * 3) return;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace xpuruntime
