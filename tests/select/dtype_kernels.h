#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/fake_driver.h"
#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime::testing {

/// Devices with any profile.
class ProfiledDriver final : public FakeDriver {
 public:
  explicit ProfiledDriver(DeviceProfile profile) : FakeDriver(profile.type, 1), shown_{std::move(profile)} {}
  const std::vector<DeviceProfile>& devices() const override { return shown_; }

 private:
  std::vector<DeviceProfile> shown_;
};

/// A kernel that takes inputs of these dtypes only, each of them as often as it likes.
inline std::shared_ptr<const Kernel> kernel_for(OpId op, std::string name, std::vector<DataType> dtypes,
                                                DeviceType type = DeviceType::npu) {
  FunctionKernel function{.op = op, .name = std::move(name), .device_type = type};
  function.supports = [dtypes = std::move(dtypes)](const Problem& problem, const DeviceProfile&) {
    const auto known = [&](const TensorSpec& spec) {
      return std::find(dtypes.begin(), dtypes.end(), spec.dtype) != dtypes.end();
    };
    const bool all = std::all_of(problem.inputs.begin(), problem.inputs.end(), known);
    return all ? Verdict::yes() : Verdict::no("another dtype");
  };
  function.run = [](const Problem&, const RunArguments&) { return Status(); };
  return make_kernel(std::move(function));
}

}  // namespace xpuruntime::testing
