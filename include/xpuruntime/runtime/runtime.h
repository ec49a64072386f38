#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/precision/amp_registry.h"
#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {

/// What a runtime opens when it is made.
struct RuntimeOptions {
  bool cuda = true;
  bool opencl = true;
  std::vector<std::string> plugins = {};  // paths of shared libraries; one that cannot be opened is an error
};

/// Owns one of each: devices, kernels, dispatcher, precision rules. Most programs use `Runtime::global()`.
class Runtime {
 public:
  explicit Runtime(const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The default instance, made on first use, with the plugins that XPURUNTIME_PLUGINS names (paths, ':' between them).
  /// It lives until the process ends.
  static Runtime& global();

  DeviceManager& devices() { return *devices_; }
  KernelRegistry& registry() { return *registry_; }
  Dispatcher& dispatcher() { return *dispatcher_; }
  /// The precision rules that autocast scopes of this runtime usually take.
  AmpRegistry& amp() { return *amp_; }

 private:
  std::unique_ptr<DeviceManager> devices_;
  std::unique_ptr<KernelRegistry> registry_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<AmpRegistry> amp_;
};

/// "0.1.0"
std::string_view version();

}  // namespace xpuruntime
