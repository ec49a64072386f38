#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/expect_error.h"
#include "xpuruntime/runtime/runtime.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {

/// A runtime with the CPU alone, and kernels of relu that only say that they ran.
class DispatchTest : public ::testing::Test {
 protected:
  /// Registers a relu kernel that calls `run` and counts its calls. Newest kernels come first in the table.
  std::shared_ptr<std::atomic<int>> add_kernel(const std::string& name, std::function<Status()> run = {},
                                               std::uint64_t workspace_bytes = 0, const std::string& version = "1") {
    auto calls = std::make_shared<std::atomic<int>>(0);
    FunctionKernel kernel;
    kernel.op = OpId::relu;
    kernel.name = name;
    kernel.workspace_bytes = workspace_bytes;
    kernel.version = version;
    kernel.run = [calls, run](const Problem&, const RunArguments&) {
      ++*calls;
      return run ? run() : Status();
    };
    runtime.registry().register_kernel(make_kernel(std::move(kernel)));
    return calls;
  }

  Dispatcher& dispatcher() { return runtime.dispatcher(); }
  KernelSelector& selector() { return *runtime.registry().get_or_create_selector({}); }

  Runtime runtime{{false, false, {}}};
};

/// relu of a vector, with its tensors.
struct Relu {
  explicit Relu(std::int64_t n = 8, DataType dtype = DataType::float32)
      : in(Tensor::empty(dtype, {n})), out(Tensor::empty(dtype, {n})) {
    std::fill_n(in.as<std::uint8_t>(), static_cast<std::size_t>(n) * size_of(dtype), std::uint8_t{0});
  }
  Call call() const { return {OpId::relu, inputs, outputs}; }

  Tensor in;
  Tensor out;
  std::array<const Tensor*, 1> inputs = {&in};
  std::array<const Tensor*, 1> outputs = {&out};
};

}  // namespace xpuruntime
