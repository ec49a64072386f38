#pragma once

#include <memory>

#include "backends/opencl/driver.h"
#include "xpuruntime/registry/backend.h"

namespace xpuruntime::opencl {

/// The kernels, fastest first, reference last.
std::span<const KernelSpec> kernel_table();

class OpenClBackend final : public Backend {
 public:
  std::string_view name() const override { return "opencl"; }
  DeviceType device_type() const override { return DeviceType::opencl; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return kernel_table(); }

 private:
  std::shared_ptr<OpenClDriver> driver_ = std::make_shared<OpenClDriver>();
};

}  // namespace xpuruntime::opencl
