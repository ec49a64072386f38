// Takes the place of a backend that cannot be built: no device, no kernels, and the reason.

#include "device/absent_driver.h"
#include "xpuruntime/registry/backend.h"

namespace xpuruntime {
namespace {

class StubBackend final : public Backend {
 public:
  std::string_view name() const override { return "opencl"; }
  DeviceType device_type() const override { return DeviceType::opencl; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return {}; }

 private:
  std::shared_ptr<DeviceDriver> driver_ = make_absent_driver(
      DeviceType::opencl, "this build has no OpenCL backend: install opencl-headers and build again");
};

}  // namespace
}  // namespace xpuruntime

XRT_EXPORT_BACKEND(xpuruntime::StubBackend)
