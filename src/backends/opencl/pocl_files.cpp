#include "backends/opencl/pocl_files.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/printable.h"
#include "core/sha256.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::opencl {

namespace fs = std::filesystem;

namespace {

/// The key of a note: the file's path and bytes. Empty where it cannot be read.
std::string key_of(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  if (error || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (!std::ifstream(path, std::ios::binary).read(text.data(), static_cast<std::streamsize>(bytes))) return {};
  return Sha256().add(path).add(std::string_view("\0", 1)).add(text).finish();
}

bool is_inside(const std::string& path, const std::string& folder) {
  std::error_code error;
  const fs::path file = fs::weakly_canonical(path, error), root = fs::weakly_canonical(folder, error);
  return !error && std::mismatch(root.begin(), root.end(), file.begin(), file.end()).first == root.end();
}

/// Whoever wrote it may not have noted it yet; for another process to remove it then would end that one.
bool is_new(const std::string& path) {
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  return !error && fs::file_time_type::clock::now() - written < std::chrono::minutes(1);
}

}  // namespace

void note_whole(const std::string& path, const DiskCache& notes) {
  if (const std::string key = key_of(path); !key.empty()) notes.put(key, "whole");
}

bool is_whole(const std::string& path, const std::string& folder, const DiskCache& notes) {
  const std::string key = key_of(path);
  if (!key.empty() && (notes.get(key) || is_new(path))) return true;
  if (is_inside(path, folder)) std::remove(path.c_str());
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
