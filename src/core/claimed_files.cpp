#include "core/claimed_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

struct Claims {
  Mutex mutex;
  std::vector<FileId> ids;
};

// Never destroyed: a store may be closed by the last static destructor.
Claims& claims() {
  static Claims& instance = *new Claims;
  return instance;
}

/// With the lock of all claims.
bool is_claimed_file(const std::string& path) {
  const auto id = file_id(path);
  return id && std::find(claims().ids.begin(), claims().ids.end(), *id) != claims().ids.end();
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

/// Whether `holds` of the file that a path names, or of the one that it would lie beside.
bool holds_of_main_file(const std::string& path, bool (*holds)(const std::string&)) {
  // Behind links: a file that SQLite keeps beside a database is known by its own name alone.
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(path, error).string();
  if (error) return false;
  const std::lock_guard lock(claims().mutex);
  for (const std::string_view beside : {"", "-wal", "-shm", "-journal"}) {
    if (real.ends_with(beside) && holds(real.substr(0, real.size() - beside.size()))) return true;
  }
  return false;
}

}  // namespace

std::optional<FileId> file_id(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileId{found.st_dev, found.st_ino};
}

FileClaim::FileClaim(FileId id) : id_(id) {
  const std::lock_guard lock(claims().mutex);
  claims().ids.push_back(id);
}

FileClaim::~FileClaim() {
  const std::lock_guard lock(claims().mutex);
  claims().ids.erase(std::find(claims().ids.begin(), claims().ids.end(), id_));
}

bool is_claimed(const std::string& path) { return holds_of_main_file(path, is_claimed_file); }

bool is_database(const std::string& path) { return holds_of_main_file(path, is_database_file); }

}  // namespace xpuruntime
