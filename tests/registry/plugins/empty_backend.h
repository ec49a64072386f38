#pragma once

#include "xpuruntime/registry/backend.h"

namespace xpuruntime {

/// A backend without kernels, for plugins that are broken elsewhere.
class EmptyBackend : public Backend {
 public:
  std::string_view name() const override { return "empty"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return nullptr; }
  std::span<const KernelSpec> kernels() const override { return {}; }
};

inline Backend* make_empty_backend() { return new EmptyBackend(); }

}  // namespace xpuruntime

/// Exports what XRT_EXPORT_BACKEND never would.
#define XRT_EXPORT_INFO(...) \
  extern "C" __attribute__((visibility("default"))) const ::xpuruntime::PluginInfo xpuruntime_plugin = {__VA_ARGS__};
