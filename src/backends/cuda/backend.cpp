#include "xpuruntime/registry/backend.h"

#include "backends/cuda/driver.h"
#include "backends/cuda/table.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend() {
    if (cuda::has_driver()) set_vendor_runtime(DeviceType::nvidia, &cuda::vendor_runtime);
  }

  std::string_view name() const override { return "cuda"; }
  DeviceType device_type() const override { return DeviceType::nvidia; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return cuda::table; }

 private:
  std::shared_ptr<DeviceDriver> driver_ = std::make_shared<cuda::CudaDriver>();
};

}  // namespace

XRT_EXPORT_BACKEND(CudaBackend)

}  // namespace xpuruntime
