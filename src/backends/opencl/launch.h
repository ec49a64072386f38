#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/opencl/driver.h"
#include "backends/opencl/index.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::opencl {

/// The opened device that a kernel is prepared for; an error if the driver is not this backend's.
DeviceContext& context_of(const PrepareContext& context);

/// Names a storage type to the sources: " -D A_TYPE=f16".
std::string type_option(char letter, DataType dtype);

/// Which function of which source to run, and on how many work-items.
struct LaunchSpec {
  std::string_view source = {};
  const char* function = nullptr;
  std::string options = {};
  std::int64_t items = 0;  // 0: nothing to do
  std::size_t local = 0;   // work-group size; 0: a usual one
  std::string token = {};
};

/// Plan of every kernel here. Kernel functions take two arguments a tensor (buffer, first element), inputs before the
/// output, and then constants that are the same in every run.
class LaunchPlan final : public Plan {
 public:
  LaunchPlan(DeviceContext& device, LaunchSpec spec, std::size_t tensors);

  /// The next constant. Its size must be exactly that of the kernel's parameter.
  template <class T>
  void add_constant(const T& value) {
    add_constant(&value, sizeof(value));
  }

  Status run(const RunArguments& arguments) const override;
  std::string token() const override { return token_; }
  bool outlives_its_work() const override { return false; }  // OpenCL keeps what queued work uses

 private:
  void add_constant(const void* value, std::size_t bytes);
  Status set_tensor(cl_uint position, const Tensor& tensor) const;

  KernelHandle kernel_;
  Queue default_queue_;  // a reference of its own: the plan may outlive the driver
  std::string token_;
  std::size_t items_ = 0;
  std::size_t local_ = 0;
  cl_uint next_argument_ = 0;
  mutable Mutex mutex_;  // a cl_kernel holds its arguments: setting them and queueing it is one step
};

}  // namespace xpuruntime::opencl
