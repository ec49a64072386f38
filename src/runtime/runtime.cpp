#include "xpuruntime/runtime/runtime.h"

#include <cstdlib>
#include <sstream>

#include "runtime/builtin.h"

namespace xpuruntime {
namespace {

std::vector<std::string> plugins_from_environment() {
  std::vector<std::string> paths;
  const char* value = std::getenv("XPURUNTIME_PLUGINS");
  std::istringstream list(value == nullptr ? "" : value);
  for (std::string path; std::getline(list, path, ':');) {
    if (!path.empty()) paths.push_back(path);
  }
  return paths;
}

}  // namespace

Runtime::Runtime(const RuntimeOptions& options)
    : devices_(std::make_unique<DeviceManager>()),
      registry_(std::make_unique<KernelRegistry>(*devices_)),
      dispatcher_(std::make_unique<Dispatcher>(*registry_)),
      amp_(std::make_unique<AmpRegistry>()) {
  add_builtin_backends(*registry_, options);
  for (const std::string& path : options.plugins) registry_->load_plugin(path);
}

Runtime::~Runtime() = default;

Runtime& Runtime::global() {
  // Never destroyed: vendors' runtimes may be gone before the last static destructor runs.
  static Runtime* instance = new Runtime({true, true, plugins_from_environment()});
  return *instance;
}

std::string_view version() { return XRT_VERSION; }

}  // namespace xpuruntime
