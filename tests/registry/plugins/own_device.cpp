// A plugin with a device type of its own, driven in host memory.

#include "../../device/fake_driver.h"
#include "plain_relu.h"

namespace xpuruntime {
namespace {

constexpr KernelSpec table[] = {
    {OpId::relu, "toy_relu", "a plain loop", DataType::float32, prepare_relu, supports_relu}};

class ToyBackend final : public Backend {
 public:
  std::string_view name() const override { return "toy"; }
  DeviceType device_type() const override { return register_device_type("toy"); }
  std::shared_ptr<DeviceDriver> driver() override { return std::make_shared<testing::FakeDriver>(device_type()); }
  std::span<const KernelSpec> kernels() const override { return table; }
};

}  // namespace

XRT_EXPORT_BACKEND(ToyBackend)

}  // namespace xpuruntime
