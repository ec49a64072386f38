#pragma once

// The backend contract. Everything needed to bring a device or a set of kernels to xpuruntime is in this header and the
// two it stands on: device/driver.h (how the library reaches your devices) and registry/kernel.h (what a kernel
// answers).
//
// A backend is
//   1. a DeviceDriver: which devices are there, memory, streams and events;
//   2. one ordered constexpr table of KernelSpec rows, fastest first, reference last;
//   3. a Backend object that hands out both.
//
// The shortest one that works:
//
//   constexpr KernelSpec table[] = {{OpId::relu, "my_relu", supports_relu, prepare_relu}};
//
//   class MyBackend : public Backend {
//    public:
//     std::string_view name() const override { return "mine"; }
//     DeviceType device_type() const override { return DeviceType::npu; }
//     std::shared_ptr<DeviceDriver> driver() override { return driver_; }     // null: kernels for a type that has one
//     std::span<const KernelSpec> kernels() const override { return table; }
//   };
//
// As a plugin, a shared library that says this once at the end:
//
//   XRT_EXPORT_BACKEND(MyBackend)
//
// and is opened with `xrt --plugin ./libmine.so ...`, `XPURUNTIME_PLUGINS=./libmine.so` or KernelRegistry::load_plugin.
// A plugin is code that runs in the caller's process: it is opened only from paths the user named.
//
// Rules of the house
//   * supports() is data, not an exception, and reads nothing but the problem and the profile.
//   * prepare() may be slow and may throw Error; run() must be quick to queue, and reports a failed launch as a Status.
//   * run() works on `arguments.stream`, on the tensors' own device, and never waits for the device if it is
//   asynchronous.
//   * Nothing prints, aborts or exits.

#include <memory>
#include <span>
#include <string_view>

#include "xpuruntime/device/driver.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {

/// Moves whenever this header, driver.h or kernel.h change in a way that old plugins would not survive.
inline constexpr std::uint32_t backend_contract_version = 1;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  virtual DeviceType device_type() const = 0;
  /// Null where the backend only adds kernels to a type that another backend drives.
  virtual std::shared_ptr<DeviceDriver> driver() = 0;
  virtual std::span<const KernelSpec> kernels() const = 0;
};

/// What a plugin exports as `xpuruntime_plugin`. Plain data first, so that a mismatch is found before any call.
struct PluginInfo {
  std::uint32_t contract_version = backend_contract_version;
  std::uint32_t struct_bytes = sizeof(PluginInfo);
  const char* compiler = "";  // the C++ ABI it was built with: must equal XRT_PLUGIN_ABI
  Backend* (*create)() = nullptr;
};

/// Names the C++ ABI of this build.
#define XRT_STRINGIFY_(x) #x
#define XRT_STRINGIFY(x) XRT_STRINGIFY_(x)
#define XRT_PLUGIN_ABI "libstdc++-cxx11-" XRT_STRINGIFY(_GLIBCXX_USE_CXX11_ABI)

#define XRT_EXPORT_BACKEND(Type)                                                                         \
  extern "C" __attribute__((visibility("default"))) const ::xpuruntime::PluginInfo xpuruntime_plugin = { \
      ::xpuruntime::backend_contract_version, sizeof(::xpuruntime::PluginInfo), XRT_PLUGIN_ABI,          \
      []() -> ::xpuruntime::Backend* { return new Type(); }};

}  // namespace xpuruntime
