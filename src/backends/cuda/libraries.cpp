#include "backends/cuda/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace xpuruntime::cuda {
namespace {

namespace fs = std::filesystem;

/// The folders of Python packages that something of this process was loaded from, this library perhaps.
std::vector<std::string> package_folders() {
  std::vector<std::string> folders;
  const auto add = [](dl_phdr_info* info, std::size_t, void* out) {
    const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
    for (const std::string_view name : {"/site-packages/", "/dist-packages/"}) {
      const std::size_t at = path.find(name);
      if (at == path.npos) continue;
      auto& found = *static_cast<std::vector<std::string>*>(out);
      std::string folder(path.substr(0, at + name.size()));
      if (std::find(found.begin(), found.end(), folder) == found.end()) found.push_back(std::move(folder));
    }
    return 0;
  };
  dl_iterate_phdr(add, &folders);
  return folders;
}

/// "nvidia/cublas/lib" of CUDA 12, "nvidia/cu13/lib" of CUDA 13.
std::vector<std::string> pip_folders() {
  std::vector<std::string> folders;
  for (const std::string& packages : package_folders()) {
    std::error_code none;
    for (fs::directory_iterator entry(packages + "nvidia", none), end; !none && entry != end; entry.increment(none)) {
      folders.push_back(entry->path() / "lib" / "");
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

void* open_first(std::span<const std::string> files) {
  for (const std::string& file : files) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  std::vector<std::string> folders = pip_folders();
  folders.emplace_back();  // the system's own search
  for (const std::string& folder : folders) {
    for (const std::string& file : files) {
      if (void* library = dlopen((folder + file).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

}  // namespace xpuruntime::cuda
