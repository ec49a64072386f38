#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "device/fake_driver.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::testing {

/// Counts copies, and their bytes.
class CountingDriver : public FakeDriver {
 public:
  CountingDriver() : FakeDriver(DeviceType::npu, 1) {}
  Status copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                        Stream stream) override {
    ++to_device, bytes_to_device += bytes;
    return FakeDriver::copy_from_host(index, memory, byte_offset, host, bytes, stream);
  }
  Status copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                      Stream stream) override {
    ++to_host, bytes_to_host += bytes;
    return FakeDriver::copy_to_host(index, host, memory, byte_offset, bytes, stream);
  }
  void forget() { to_device = 0, to_host = 0, bytes_to_device = 0, bytes_to_host = 0; }

  std::atomic<std::size_t> to_device = 0, to_host = 0, bytes_to_device = 0, bytes_to_host = 0;
};

/// A runtime with npu:0, which has memory of its own and kernels for some ops: those of the CPU in another runtime.
class PartialDevice {
 public:
  explicit PartialDevice(const std::vector<OpId>& ops) {
    runtime.devices().add_driver(driver);
    for (const OpId op : ops) {
      FunctionKernel kernel;
      kernel.op = op;
      kernel.name = "fake";
      kernel.device_type = DeviceType::npu;
      kernel.version = "1";
      kernel.run = [op](const Problem& problem, const RunArguments& arguments) {
        std::vector<Tensor> tensors;
        std::vector<const Tensor*> inputs, outputs;
        tensors.reserve(arguments.inputs.size() + arguments.outputs.size());
        const auto add = [&](const Tensor& tensor, std::vector<const Tensor*>& to) {
          to.push_back(&tensors.emplace_back(tensor.data(), tensor.spec(), Device{}, tensor.byte_offset()));
        };
        for (const Tensor* tensor : arguments.inputs) add(*tensor, inputs);
        for (const Tensor* tensor : arguments.outputs) add(*tensor, outputs);
        Runtime::global().dispatcher().dispatch(
            {.op = op, .inputs = inputs, .outputs = outputs, .attributes = &problem.attributes});
        return Status();
      };
      runtime.registry().register_kernel(make_kernel(std::move(kernel)));
    }
  }

  Runtime runtime{RuntimeOptions{false, false, {}}};
  const std::shared_ptr<CountingDriver> driver = std::make_shared<CountingDriver>();
};

}  // namespace xpuruntime::testing
