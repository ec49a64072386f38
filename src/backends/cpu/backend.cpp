#include "backends/cpu/backend.h"

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/table.h"

namespace xpuruntime {
namespace cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return driver_; }
  std::span<const KernelSpec> kernels() const override { return table; }

 private:
  std::shared_ptr<DeviceDriver> driver_ = make_cpu_driver();
};

}  // namespace
}  // namespace cpu

std::shared_ptr<Backend> make_cpu_backend() {
  cpu::check_thread_environment();
  return std::make_shared<cpu::CpuBackend>();
}

}  // namespace xpuruntime
