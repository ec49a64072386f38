#include "backends/opencl/pocl_files.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/printable.h"
#include "core/sha256.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::opencl {

namespace fs = std::filesystem;

std::string mark_of_file(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  if (error || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (!std::ifstream(path, std::ios::binary).read(text.data(), static_cast<std::streamsize>(bytes))) return {};
  return std::to_string(bytes) + " " + Sha256().add(text).finish() + " " + path;
}

std::string path_in_mark(const std::string& mark) {
  const std::size_t second = mark.find(' ', mark.find(' ') + 1);
  return second == mark.npos ? "" : mark.substr(second + 1);
}

bool is_as_marked(const std::string& mark) {
  const std::string path = path_in_mark(mark);
  if (!mark.empty() && mark_of_file(path) == mark) return true;
  if (!path.empty()) std::remove(path.c_str());
  return false;
}

std::string program_file_of(const std::string& machine_code) {
  // PROGRAM/KERNEL/SIZES/KERNEL.so
  return (fs::path(machine_code).parent_path().parent_path().parent_path() / "program.bc").string();
}

void make_room(const std::string& folder, std::uint64_t least) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) fs::create_directories(folder, ignored);
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) != 0 || disk.f_blocks == 0) return;
  const std::uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  if (blocks * disk.f_frsize >= least) return;
  fail(ErrorCode::out_of_memory, "opencl::build",
       "the disk with PoCL's cache '" + printable(folder) + "' has " + std::to_string(blocks * disk.f_frsize) +
           " bytes free, and PoCL ends the process where it cannot write there; free " + std::to_string(least) +
           " bytes, or set POCL_CACHE_DIR to another folder");
}

}  // namespace xpuruntime::opencl
