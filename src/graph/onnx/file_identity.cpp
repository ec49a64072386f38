#include "graph/onnx/file_identity.h"

#include <sys/stat.h>

#include <chrono>

namespace xpuruntime::onnx {
namespace {

std::string text_of(const timespec& time) { return std::to_string(time.tv_sec) + "." + std::to_string(time.tv_nsec); }

}  // namespace

FileIdentity identity_of(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return {};
  constexpr std::chrono::seconds coarsest_step{2};  // of the clocks of file systems
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto changed = std::chrono::seconds(found.st_ctim.tv_sec) + std::chrono::nanoseconds(found.st_ctim.tv_nsec);
  return {std::to_string(found.st_dev) + " " + std::to_string(found.st_ino) + " " + std::to_string(found.st_size) +
              " " + text_of(found.st_mtim) + " " + text_of(found.st_ctim),
          now - changed > coarsest_step};
}

std::string identity_of_files(const Model& model) {
  std::string text = identity_of(model.path).text;
  for (const std::string& path : model.data_files) text += "\n" + identity_of(path).text;
  return text;
}

}  // namespace xpuruntime::onnx
