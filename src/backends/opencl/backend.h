#pragma once

#include <memory>

#include "backends/opencl/driver.h"
#include "backends/opencl/table.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/registry/backend.h"

namespace xpuruntime::opencl {

class OpenClBackend final : public Backend {
 public:
  OpenClBackend() {
    static constexpr VendorRuntime runtime = {
        .stream_id = [](int, void* handle) { return queue_id(static_cast<cl_command_queue>(handle)); }};
    set_vendor_runtime(DeviceType::opencl, &runtime);
  }

  std::string_view name() const override { return "opencl"; }
  DeviceType device_type() const override { return DeviceType::opencl; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return table; }

 private:
  std::shared_ptr<OpenClDriver> driver_ = std::make_shared<OpenClDriver>();
};

}  // namespace xpuruntime::opencl
