#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace xpuruntime {

/// Which file it is, whatever names lead to it.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileId&) const = default;
};

/// Nothing where there is no file, or none that may be looked at.
std::optional<FileId> file_id(const std::string& path);

/// A database that this process has open. POSIX drops all locks of a process on a file as soon as it closes any
/// descriptor of it: what reads or writes files by a name from outside asks `is_claimed` before it opens them.
class FileClaim {
 public:
  /// The path without links: the files beside it are looked for there.
  FileClaim(std::string path, FileId id);
  ~FileClaim();
  FileClaim(const FileClaim&) = delete;
  FileClaim& operator=(const FileClaim&) = delete;

  const std::string& path() const { return path_; }
  FileId id() const { return id_; }

 private:
  std::string path_;
  FileId id_;
};

/// The file behind a path's links, also where it is still to be made; a link where they go round.
std::filesystem::path behind_links(std::filesystem::path path);

/// The database beside which SQLite keeps the file that a path names: `a` for `a-wal`, there or not. A hard link to
/// such a file is known while this process has the database open. Empty where there is none.
std::string main_file_of(const std::string& path);

/// Also of the files that SQLite keeps beside a database.
bool is_claimed(const std::string& path);

/// Whether a path names an SQLite database, open here or not, or a file that belongs beside one.
bool is_database(const std::string& path);

}  // namespace xpuruntime
