#include "core/claimed_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

struct Claims {
  Mutex mutex;
  std::vector<const FileClaim*> all;
};

// Never destroyed: a store may be closed by the last static destructor.
Claims& claims() {
  static Claims& instance = *new Claims;
  return instance;
}

/// With the lock of all claims.
bool is_claimed_file(const std::string& path) {
  const auto id = file_id(path);
  const auto& all = claims().all;
  return std::any_of(all.begin(), all.end(), [&](const FileClaim* claim) { return id == claim->id(); });
}

/// With the lock of all claims: nobody here opens it as a store while it is looked at.
bool is_database_file(const std::string& path) {
  if (is_claimed_file(path)) return true;
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  const int handle = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (handle < 0) return false;
  constexpr std::string_view magic("SQLite format 3\0", 16);
  std::array<char, magic.size()> head = {};
  const ssize_t got = read(handle, head.data(), head.size());
  close(handle);
  return got == static_cast<ssize_t>(magic.size()) && std::string_view(head.data(), head.size()) == magic;
}

/// With the lock of all claims.
std::string main_file(const std::string& path) {
  constexpr std::string_view all_beside[] = {"-wal", "-shm", "-journal"};
  const std::string real = behind_links(path).string();
  for (const std::string_view beside : all_beside) {
    if (real == beside) return ".";
    if (real.ends_with(beside)) return real.substr(0, real.size() - beside.size());
  }
  const auto id = file_id(path);
  if (!id) return {};
  for (const FileClaim* claim : claims().all) {
    for (const std::string_view beside : all_beside) {
      if (id == file_id(std::string(claim->path()).append(beside))) return claim->path();
    }
  }
  return {};
}

}  // namespace

std::optional<FileId> file_id(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileId{found.st_dev, found.st_ino};
}

FileClaim::FileClaim(std::string path, FileId id) : path_(std::move(path)), id_(id) {
  const std::lock_guard lock(claims().mutex);
  claims().all.push_back(this);
}

FileClaim::~FileClaim() {
  const std::lock_guard lock(claims().mutex);
  std::erase(claims().all, this);
}

fs::path behind_links(fs::path path) {
  std::error_code ignored;        // what cannot be looked at cannot be written: that says why
  constexpr int most_links = 40;  // as the system itself follows
  for (int i = 0; i < most_links && fs::is_symlink(fs::symlink_status(path, ignored)); ++i) {
    path = path.parent_path() / fs::read_symlink(path, ignored);  // an absolute one replaces the folder
  }
  return path;
}

std::string main_file_of(const std::string& path) {
  const std::lock_guard lock(claims().mutex);
  return main_file(path);
}

bool is_claimed(const std::string& path) {
  const std::lock_guard lock(claims().mutex);
  return is_claimed_file(path) || is_claimed_file(main_file(path));
}

bool is_database(const std::string& path) {
  const std::lock_guard lock(claims().mutex);
  // The main file first: where it is open here, the one beside it must not be opened, as closing it drops its locks.
  return is_database_file(main_file(path)) || is_database_file(path);
}

}  // namespace xpuruntime
