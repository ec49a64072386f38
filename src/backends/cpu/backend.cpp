#include "backends/cpu/backend.h"

#include <algorithm>

#include "backends/cpu/driver.h"
#include "backends/cpu/kernels.h"

namespace xpuruntime {
namespace cpu {

Verdict supports_forward(const Problem& problem, const DeviceProfile&) {
  if (problem.direction != Direction::forward) return Verdict::no("it has no backward");
  const auto aligned = [](const TensorSpec& spec) {
    return spec.alignment >= std::min<std::size_t>(size_of(spec.dtype), 8);
  };
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) {
      if (!aligned(spec)) return Verdict::no("a tensor is not aligned to its element size; copy it first");
    }
  }
  return Verdict::yes();
}

namespace {

// Fastest first, reference last. The order is the priority.
constexpr KernelSpec table[] = {
    {OpId::matmul, "openblas", supports_matmul_openblas, prepare_matmul_openblas},
    {OpId::matmul, "reference", supports_forward, prepare_matmul_reference},
    {OpId::add, "reference", supports_forward, prepare_add_reference},
    {OpId::relu, "reference", supports_forward, prepare_relu_reference},
    {OpId::cast, "reference", supports_forward, prepare_cast_reference},
    {OpId::softmax, "reference", supports_forward, prepare_softmax_reference},
};

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

std::shared_ptr<Backend> make_cpu_backend() { return std::make_shared<cpu::CpuBackend>(); }

}  // namespace xpuruntime
