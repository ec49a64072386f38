#include "graph/session/file_content.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <system_error>

#include "core/sha256.h"
#include "graph/onnx/mapped_file.h"

namespace xpuruntime {
namespace {

/// Nothing that the system says of a file, unlike when it was last written, can be set by those who write it: the
/// moment of the last change. Its clock has steps, so that what was changed just now may change again in the same one.
bool is_settled(const struct stat& found) {
  constexpr std::chrono::seconds coarsest_step{2};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto changed = std::chrono::seconds(found.st_ctim.tv_sec) + std::chrono::nanoseconds(found.st_ctim.tv_nsec);
  return now - changed > coarsest_step;
}

std::string text_of(const timespec& time) { return std::to_string(time.tv_sec) + "." + std::to_string(time.tv_nsec); }

/// Empty: the file cannot be told from others.
std::string identity_of(const std::string& path) {
  struct stat found = {};
  std::error_code error;
  const std::filesystem::path place = std::filesystem::canonical(path, error);
  if (error || stat(path.c_str(), &found) != 0 || !is_settled(found)) return {};
  std::string text = place.string();
  for (const std::uint64_t number :
       {std::uint64_t{found.st_dev}, std::uint64_t{found.st_ino}, static_cast<std::uint64_t>(found.st_size)}) {
    text += " " + std::to_string(number);
  }
  return Sha256().add(text + " " + text_of(found.st_mtim) + " " + text_of(found.st_ctim)).finish();
}

}  // namespace

std::string content_of_file(const std::string& path, const DiskCache& kept) {
  const std::string identity = identity_of(path);
  if (!identity.empty()) {
    if (auto content = kept.get(identity)) return *content;
  }
  const onnx::SharedBytes file = onnx::map_file(path);
  const std::string content = Sha256().add(file.bytes).finish();
  if (!identity.empty() && identity_of(path) == identity) kept.put(identity, content);
  return content;
}

}  // namespace xpuruntime
