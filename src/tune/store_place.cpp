#include "tune/store_place.h"

#include <grp.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "core/claimed_files.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& message) { fail(ErrorCode::io_error, "open_store", message); }

/// Nothing where it is missing.
std::optional<struct stat> look_at(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0) return found;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  refuse("'" + path + "' cannot be looked at: " + std::strerror(errno) + "; check the name and your rights");
}

void make_folders(const fs::path& folder, const std::string& path) {
  if (const auto there = look_at(folder)) {
    if (S_ISDIR(there->st_mode)) return;
    refuse("the folder of '" + path + "' cannot be made: '" + folder.string() + "' is none; name another place");
  }
  if (folder.has_parent_path() && folder != folder.parent_path()) make_folders(folder.parent_path(), path);
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  refuse("the folder of '" + path + "' cannot be made: " + std::strerror(errno) + "; name another place");
}

// ---- who may change it ----

struct Names {
  std::string user = {};
  std::vector<std::string> members = {};
  std::string group = {};
};

/// Empty where the system does not know them, as in many containers.
Names names_of(uid_t user, gid_t group) {
  Names names;
  std::vector<char> memory(1 << 16);
  passwd user_row = {}, *found_user = nullptr;
  if (getpwuid_r(user, &user_row, memory.data(), memory.size(), &found_user) == 0 && found_user != nullptr) {
    names.user = found_user->pw_name;
  }
  struct group group_row = {}, *found_group = nullptr;
  if (getgrgid_r(group, &group_row, memory.data(), memory.size(), &found_group) == 0 && found_group != nullptr) {
    names.group = found_group->gr_name;
    for (char** member = found_group->gr_mem; *member != nullptr; ++member) names.members.emplace_back(*member);
  }
  return names;
}

/// Many systems give each user a group of the same name and let that group write (umask 002): nobody else is in it.
bool is_private_group(const struct stat& of) {
  const Names names = names_of(of.st_uid, of.st_gid);
  if (names.user.empty() || names.group.empty()) return of.st_uid == of.st_gid;
  for (const std::string& member : names.members) {
    if (member != names.user) return false;
  }
  return names.group == names.user;
}

std::string mode_text(const struct stat& of) {
  constexpr char digits[] = "01234567";
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) text += digits[of.st_mode >> shift & 7];
  return text;
}

/// A link that another user made leads where that user wants.
void check_link(const std::string& path) {
  struct stat link = {};
  if (lstat(path.c_str(), &link) != 0 || !S_ISLNK(link.st_mode)) return;
  if (link.st_uid == geteuid() || link.st_uid == 0) return;
  refuse("'" + path + "' is a link that user " + std::to_string(link.st_uid) +
         " made, who could point it to another file; name the file itself, in a folder of your own");
}

/// Files of /proc and the like pose as regular ones, and reading some waits for ever.
bool is_of_kernel(const std::string& path) {
  struct statfs found = {};
  if (statfs(path.c_str(), &found) != 0) return false;
  constexpr unsigned long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC};
  return std::find(std::begin(kinds), std::end(kinds), static_cast<unsigned long>(found.f_type)) != std::end(kinds);
}

void check_kind(const struct stat& file, const std::string& path, StoreMode mode) {
  if (S_ISDIR(file.st_mode)) refuse("'" + path + "' is a folder; name a file in it");
  if (!S_ISREG(file.st_mode)) refuse("'" + path + "' is a device, a pipe or a socket; name a regular file");
  if (is_of_kernel(path)) refuse("'" + path + "' is a file of the system, not of a disk; name a regular file");
  // SQLite names the log after the file: two names would have two logs for one file.
  if (mode == StoreMode::read_write && file.st_nlink > 1) {
    refuse("'" + path + "' has " + std::to_string(file.st_nlink) +
           " names (hard links), and writers by different names would destroy it; copy it to a file of one name");
  }
}

/// SQLite empties what it finds beside a new store as the rest of an old one: a file of something else would be lost.
void check_leftover(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::array<char, 4> head = {};
  file.read(head.data(), head.size());
  const std::string_view begins(head.data(), static_cast<std::size_t>(file.gcount()));
  using namespace std::string_view_literals;
  for (const std::string_view known :
       {""sv, "\x37\x7f\x06\x82"sv, "\x37\x7f\x06\x83"sv, "\xd9\xd5\x05\xf9"sv, "\0\0\0\0"sv}) {
    if (begins == known) return;
  }
  refuse("'" + name + "' is not SQLite's, which would empty it for the new store; move it or name another store");
}

}  // namespace

void check_owner_and_mode(const struct stat& of, const std::string& what, const std::string& path) {
  const std::string subject = what + " '" + path + "' ";
  if (of.st_uid != geteuid() && of.st_uid != 0) {
    const std::string name = names_of(of.st_uid, of.st_gid).user;
    refuse(subject + "belongs to user " + std::to_string(of.st_uid) + (name.empty() ? "" : " (" + name + ")") +
           ", who could replace your store; name a file in a folder of your own, or take it over "
           "with chown. To share measurements, use xrt store export and import");
  }
  // In a sticky folder such as /tmp others may add files, but not replace or remove ours.
  if (S_ISDIR(of.st_mode) && (of.st_mode & S_ISVTX) != 0) return;
  const bool by_group = (of.st_mode & S_IWGRP) != 0 && !is_private_group(of);
  if (by_group || (of.st_mode & S_IWOTH) != 0) {
    refuse(subject + "may be written by others (mode " + mode_text(of) + "), who could replace " +
           "your store; run chmod go-w on it, or name a file in a folder of your own");
  }
}

void check_store_name(const std::string& path) {
  if (path.find('\0') != std::string::npos) refuse("the store's name contains a zero byte; name another file");
  const std::string store = main_file_of(path);
  if (store.empty()) return;
  refuse("'" + path +
         "' names a file that SQLite keeps beside a store (-wal, -shm, -journal); name the store instead: '" + store +
         "'");
}

void make_store_folder(const std::string& path) { make_folders(fs::absolute(path).parent_path(), path); }

void check_store_place(const std::string& path, StoreMode mode) {
  check_link(path);
  const auto file = look_at(path);
  if (file) check_kind(*file, path, mode);
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path), error);
  if (error) refuse("'" + path + "' cannot be followed: " + error.message() + "; check the name and your rights");
  const std::string folder = real.parent_path();
  if (const auto found = look_at(folder)) check_owner_and_mode(*found, "the folder", folder);
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    const std::string name = real.string() + beside;
    check_link(name);
    const auto found = look_at(name);
    if (!found) continue;
    check_owner_and_mode(*found, "the file", name);
    if (!S_ISREG(found->st_mode)) {  // opening a pipe would wait for ever
      refuse("'" + name + "' is no regular file, and SQLite keeps one of that name beside the store; " +
             "remove it or name another store");
    }
  }
  if (file && file->st_size != 0) return;
  for (const char* beside : {"-wal", "-journal"}) check_leftover(real.string() + beside);
}

}  // namespace xpuruntime
