#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "backends/cpu/backend.h"
#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime::testing {

/// The CPU without a kernel.
class BareCpu final : public Backend {
 public:
  std::string_view name() const override { return "bare_cpu"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return cpu_->driver(); }
  std::span<const KernelSpec> kernels() const override { return {}; }

 private:
  std::shared_ptr<Backend> cpu_ = make_cpu_backend();
};

inline Status relu(const RunArguments& arguments) {
  const Tensor& in = *arguments.inputs[0];
  const Tensor& out = *arguments.outputs[0];
  const auto count = static_cast<std::size_t>(element_count(in.spec()));
  if (in.dtype() == DataType::float64) {
    std::transform(in.as<double>(), in.as<double>() + count, out.as<double>(),
                   [](double x) { return std::max(x, 0.0); });
  } else {
    std::transform(in.as<float>(), in.as<float>() + count, out.as<float>(), [](float x) { return std::max(x, 0.0F); });
  }
  return {};
}

/// A built-in kernel `fast` whose relu is a little off.
class WrongCpu final : public Backend {
 public:
  std::string_view name() const override { return "wrong_cpu"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  std::shared_ptr<DeviceDriver> driver() override { return nullptr; }
  std::span<const KernelSpec> kernels() const override { return table; }

 private:
  class Wrong final : public Plan {
    Status run(const RunArguments& arguments) const override {
      const Status status = relu(arguments);
      const Tensor& out = *arguments.outputs[0];
      if (out.dtype() == DataType::float64) {
        *out.as<double>() += 1e-4;
      } else {
        *out.as<float>() += 1e-4F;
      }
      return status;
    }
  };
  static std::unique_ptr<const Plan> prepare(const Problem&, const PrepareContext&) {
    return std::make_unique<Wrong>();
  }
  static constexpr KernelSpec table[] = {{OpId::relu, "fast", "a little off", any_dtype, prepare}};
};

/// A machine whose time goes by only when its relu kernels run: nothing here depends on how fast the tests are.
class MadeUpMachine {
 public:
  MadeUpMachine() { registry.add_backend(std::make_shared<BareCpu>()); }

  /// A kernel that takes so long and then does `work`.
  void add(const std::string& name, double us, std::function<Status(const RunArguments&)> work = relu) {
    FunctionKernel kernel;
    kernel.op = OpId::relu;
    kernel.name = name;
    add(std::move(kernel), us, std::move(work));
  }
  void add(FunctionKernel kernel, double us, std::function<Status(const RunArguments&)> work = relu) {
    kernel.run = [this, us, work = std::move(work)](const Problem&, const RunArguments& arguments) {
      now_us += us;
      return work(arguments);
    };
    registry.register_kernel(make_kernel(std::move(kernel)));
  }

  double now_us = 1e6;
  DeviceManager devices;
  KernelRegistry registry{devices};
};

}  // namespace xpuruntime::testing
