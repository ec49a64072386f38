#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/device_context.h"
#include "core/lazily.h"
#include "device/absent_driver.h"
#include "xpuruntime/device/driver.h"
#include "xpuruntime/device/source_function.h"

namespace xpuruntime::opencl {

/// The OpenCL devices of this machine, in the order of the platforms; or why there is none.
struct Discovery {
  std::vector<cl_device_id> devices = {};
  std::vector<DeviceProfile> profiles = {};  // one for each device
  std::string why_absent = {};
  std::vector<std::string> left_out = {};  // drivers and devices that cannot be used, with the reason
};

Discovery discover();

/// All OpenCL devices of all platforms. Memory is a `cl_mem`, a stream a `cl_command_queue`, an event a `cl_event`.
class OpenClDriver final : public DeviceDriver, public SourceCompiler, public TryingDriver {
 public:
  OpenClDriver() = default;

  DeviceType type() const override { return DeviceType::opencl; }
  const std::vector<DeviceProfile>& devices() const override { return found().discovery.profiles; }
  std::string why_absent() const override { return found().discovery.why_absent; }

  std::vector<std::string> left_out() const override { return found().discovery.left_out; }

  void* allocate(int index, std::size_t bytes) override;
  void deallocate(int index, void* memory) noexcept override;
  Status copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                        Stream stream) override;
  Status copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                      Stream stream) override;

  Stream create_stream(int index) override;
  void destroy_stream(int index, Stream stream) noexcept override;
  Status synchronize(int index, Stream stream) override;
  Status wait(int index) override;

  std::uint64_t stream_id(int index, void* handle) override;

  Event create_event(int index) override;
  void destroy_event(int index, Event event) noexcept override;
  Status record_event(int index, Event& event, Stream stream) override;
  Status wait_event(int index, Event event) override;
  Status queue_wait(int index, Stream stream, Event event) override;
  bool event_done(int index, Event event) override;
  double elapsed_us(int index, Event from, Event to) override;
  bool asynchronous() const override { return true; }
  std::shared_ptr<SourceFunction> compile(int index, const FunctionSource& source) override;
  std::unique_ptr<ValueFault> make_value_fault(int index, std::string message) override;

  /// For this backend's kernels.
  DeviceContext& context(int index);

 private:
  struct Found {
    Discovery discovery = {};
    std::vector<std::unique_ptr<DeviceContext>> contexts = {};
  };
  static Found find();
  Found& found() const { return found_.get(&find); }

  Lazily<Found> found_;  // looking for devices starts the vendors' drivers: not before one is asked for
};

}  // namespace xpuruntime::opencl
