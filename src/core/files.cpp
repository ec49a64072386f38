#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/claimed_files.h"
#include "core/json_text.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

/// An open file that is closed again.
class Handle {
 public:
  explicit Handle(int handle) : handle_(handle) {}
  ~Handle() {
    if (handle_ >= 0) close(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int get() const { return handle_; }

 private:
  int handle_;
};

std::string what_it_is(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

/// A size as people write it.
std::string in_units(std::size_t bytes) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  return bytes >= mebibyte ? std::to_string(bytes / mebibyte) + " MiB" : std::to_string(bytes) + " bytes";
}

[[noreturn]] void refuse_reading(const JsonSource& source, int error) {
  source.refuse(ErrorCode::io_error, std::string("cannot be read: ") + std::strerror(error) +
                                         "; check that it exists and that you may read it");
}

/// Never waits for a pipe's other end, and touches no device: to open one may already do something.
int open_regular(const std::string& path, const JsonSource& source) {
  if (path.empty()) source.refuse(ErrorCode::io_error, "cannot be read: the name is empty; name a file");
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) refuse_reading(source, errno);
  const int handle = S_ISREG(found.st_mode) ? open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) : -1;
  if (S_ISREG(found.st_mode) && handle < 0) refuse_reading(source, errno);
  // It may have become another between the two.
  if (handle >= 0 && fstat(handle, &found) == 0 && S_ISREG(found.st_mode)) return handle;
  if (handle >= 0) close(handle);
  source.refuse(ErrorCode::io_error,
                "cannot be read: it is " + what_it_is(found.st_mode) + "; name a regular file" +
                    (S_ISFIFO(found.st_mode) ? ", and save the pipe's output in a file first" : ""));
}

/// A file that is removed again unless it was renamed to its place.
class TemporaryFile {
 public:
  /// As private as the file that it is to replace, from the first byte on.
  explicit TemporaryFile(const std::string& path) {
    struct stat old = {};
    const bool replaces = stat(path.c_str(), &old) == 0;
    static std::atomic<unsigned> count{0};
    do {
      name_ = path + "." + std::to_string(getpid()) + "-" + std::to_string(count++);
      handle_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
    } while (handle_ < 0 && errno == EEXIST);
    if (handle_ >= 0 && replaces) take_over(old);
  }
  ~TemporaryFile() {
    if (handle_ >= 0) close(handle_);
    if (handle_ >= 0 && !kept_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool is_made() const { return handle_ >= 0; }
  bool write_all(std::string_view text) const {
    if (!is_made()) return false;
    while (!text.empty()) {
      const ssize_t written = ::write(handle_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return fsync(handle_) == 0;
  }
  bool move_to(const std::string& path) { return kept_ = rename(name_.c_str(), path.c_str()) == 0; }

 private:
  /// Permissions, and group and owner where the system lets us. Another group gets no more than everybody has.
  void take_over(const struct stat& old) const {
    mode_t mode = old.st_mode & 0777;
    if (fchown(handle_, static_cast<uid_t>(-1), old.st_gid) != 0) mode &= 0707 | (mode & 07) << 3;
    if (fchmod(handle_, mode) != 0) return;
    if (fchown(handle_, old.st_uid, static_cast<gid_t>(-1)) != 0) return;  // only root can give files away
  }

  std::string name_ = {};
  int handle_ = -1;
  bool kept_ = false;
};

/// A rename would put the file in the place of the link.
std::string target_of(const std::string& path, const JsonSource& source) {
  const fs::path target = behind_links(path);
  std::error_code ignored;
  if (fs::is_symlink(fs::symlink_status(target, ignored))) {
    source.refuse(ErrorCode::io_error, "cannot be written: its symbolic links are broken; name a file");
  }
  return target.string();
}

/// The rename itself is on the disk once its folder is. A folder that cannot be synced has nothing to tell us.
void sync_folder(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const Handle handle(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle.get() >= 0 && fsync(handle.get()) != 0) return;
}

}  // namespace

std::string flaw_of_output_file(const std::string& path) {
  if (path.empty()) return "cannot be written: the name is empty; name a file";
  if (is_database(path)) {
    return "cannot be written: it is a store or belongs to one (an SQLite database); name another file";
  }
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0) {
    if (S_ISREG(found.st_mode)) return {};
    return "cannot be written: it is " + what_it_is(found.st_mode) + "; name a file";
  }
  const int error = errno;
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ignored;
  if (error == ENOENT && !fs::is_symlink(fs::symlink_status(path, ignored))) {
    if (folder.empty() || fs::is_directory(folder, ignored)) return {};
    return "cannot be written: there is no folder " + printable(folder.string()) + "; make it first";
  }
  if (error == ENOENT) return {};  // behind the link a file may be made
  return std::string("cannot be written: ") + std::strerror(error) + "; name a file that can be made";
}

std::string flaw_of_new_file(const std::string& path) {
  if (const std::string flaw = flaw_of_output_file(path); !flaw.empty()) return flaw;
  if (const TemporaryFile file(behind_links(path).string()); file.is_made()) return {};
  return std::string("cannot be written: no file can be made in its folder: ") + std::strerror(errno) +
         "; name a file in another folder";
}

bool same_file(const std::string& a, const std::string& b) {
  const auto first = file_id(a), second = file_id(b);
  if (first || second) return first == second;
  std::error_code ignored;
  const auto whole = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(behind_links(path), ignored), ignored);
  };
  return whole(a) == whole(b);
}

std::string read_text_file(const std::string& path, const JsonSource& source, std::size_t most_bytes) {
  if (is_claimed(path)) source.refuse(ErrorCode::io_error, "is a store that this process has open; name another file");
  const Handle file(open_regular(path, source));
  std::string text;
  // In pieces: most files are far smaller than the most that one may be.
  constexpr std::size_t piece = std::size_t{1} << 16;
  while (text.size() <= most_bytes) {
    const std::size_t before = text.size();
    text.resize(before + piece);
    const ssize_t got = ::read(file.get(), text.data() + before, piece);
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) refuse_reading(source, errno);
  }
  source.refuse(ErrorCode::corrupt_data, "larger than any " + std::string(source.kind) + " may be, which is " +
                                             in_units(most_bytes) + "; check that it is the right file");
}

void write_file_atomically(const std::string& path, std::string_view text, const JsonSource& source) {
  if (const std::string flaw = flaw_of_output_file(path); !flaw.empty()) source.refuse(ErrorCode::io_error, flaw);
  const std::string target = target_of(path, source);
  TemporaryFile file(target);
  if (!file.write_all(text) || !file.move_to(target)) {
    source.refuse(ErrorCode::io_error, std::string("cannot be written: ") + std::strerror(errno) +
                                           "; check the folder and the free space. What was there is unchanged");
  }
  sync_folder(target);
}

}  // namespace xpuruntime
