#include "core/claimed_files.h"

#include <sys/stat.h>

#include <algorithm>
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

bool is_claimed(const std::string& path) {
  // Behind links: a file that SQLite keeps beside a database is known by its own name alone.
  std::error_code error;
  const std::string real = std::filesystem::weakly_canonical(path, error).string();
  if (error) return false;
  for (const std::string_view beside : {"", "-wal", "-shm", "-journal"}) {
    if (!real.ends_with(beside)) continue;
    const auto id = file_id(real.substr(0, real.size() - beside.size()));
    const std::lock_guard lock(claims().mutex);
    if (id && std::find(claims().ids.begin(), claims().ids.end(), *id) != claims().ids.end()) return true;
  }
  return false;
}

}  // namespace xpuruntime
