#include "registry/plugin.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <fstream>
#include <string_view>
#include <vector>

#include "core/claimed_files.h"
#include "core/sha256.h"
#include "registry/shared_object.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& path, const std::string& why) {
  fail(code, "load_plugin", "'" + path + "' " + why);
}

void check_path(const std::string& path) {
  // Without a slash the loader would search the system's folders: plugins come only from where the user said.
  if (path.find('/') == std::string::npos && path != "." && path != "..") {
    refuse(ErrorCode::invalid_argument, path,
           "names no folder; write the path of the file, such as ./" + (path.empty() ? "plugin.so" : path));
  }
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) refuse(ErrorCode::io_error, path, "does not exist; check the path");
  if (!S_ISREG(status.st_mode)) refuse(ErrorCode::io_error, path, "is not a file; give the path of a shared library");
  if (is_claimed(path)) refuse(ErrorCode::io_error, path, "is a store that this process has open; name another file");
  if (const std::string flaw = flaw_of_shared_object(path); !flaw.empty()) {
    refuse(ErrorCode::corrupt_data, path, flaw);
  }
}

const PluginInfo& checked_info(void* library, const std::string& path) {
  const auto* info = static_cast<const PluginInfo*>(dlsym(library, "xpuruntime_plugin"));
  if (info == nullptr) {
    refuse(
        ErrorCode::corrupt_data, path,
        "is a shared library but not a plugin: it does not export xpuruntime_plugin; end it with XRT_EXPORT_BACKEND");
  }
  if (info->contract_version == backend_contract_version && info->struct_bytes != sizeof(PluginInfo)) {
    refuse(ErrorCode::not_supported, path,
           "describes itself in " + std::to_string(info->struct_bytes) + " bytes where this library expects " +
               std::to_string(sizeof(PluginInfo)) + "; rebuild it against these headers");
  }
  if (info->contract_version != backend_contract_version) {
    refuse(ErrorCode::not_supported, path,
           "was built for version " + std::to_string(info->contract_version) + " of the backend contract, this is " +
               std::to_string(backend_contract_version) + "; rebuild it against these headers");
  }
  const std::string_view abi = info->compiler == nullptr ? "" : info->compiler;
  if (abi != XRT_PLUGIN_ABI) {
    refuse(ErrorCode::not_supported, path,
           "was built with C++ ABI '" + std::string(abi.substr(0, 64)) + "'" +
               ", this library with " XRT_PLUGIN_ABI "; rebuild it with a matching compiler");
  }
  if (info->create == nullptr) {
    refuse(ErrorCode::corrupt_data, path, "exports no create function; end it with XRT_EXPORT_BACKEND");
  }
  return *info;
}

}  // namespace

std::string hash_of_plugin(const std::string& path) {
  check_path(path);
  std::ifstream file(path, std::ios::binary);
  Sha256 hash;
  std::vector<char> part(std::size_t{1} << 16);
  while (file.read(part.data(), static_cast<std::streamsize>(part.size())) || file.gcount() > 0) {
    hash.add(std::string_view(part.data(), static_cast<std::size_t>(file.gcount())));
  }
  if (!file.eof()) refuse(ErrorCode::io_error, path, "could not be read to its end; check the disk");
  return "sha256:" + hash.finish().substr(0, 16);
}

std::shared_ptr<Backend> open_plugin(const std::string& path) {
  check_path(path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    refuse(ErrorCode::io_error, path,
           std::string("could not be opened: ") + (why ? why : "no reason given") +
               "; check that it is a shared library for this machine and that what it links is installed");
  }
  const PluginInfo* info = nullptr;
  try {
    info = &checked_info(library, path);
  } catch (...) {
    dlclose(library);
    throw;
  }
  std::shared_ptr<Backend> backend;
  try {
    backend.reset(info->create());
  } catch (...) {
    refuse(ErrorCode::device_error, path, "failed to start: " + exception_text() + "; ask its author");
  }
  if (backend == nullptr) refuse(ErrorCode::device_error, path, "made no backend; ask its author");
  return backend;
}

}  // namespace xpuruntime
