#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime {

class WorkspacePool;

/// Knows the drivers and, through them, the devices of this machine. Device addresses and pools are stable.
class DeviceManager {
 public:
  DeviceManager();
  ~DeviceManager();
  DeviceManager(const DeviceManager&) = delete;
  DeviceManager& operator=(const DeviceManager&) = delete;

  /// A second driver for the same type is an error. The driver must outlive the manager (shared ownership sees to it).
  void add_driver(std::shared_ptr<DeviceDriver> driver);

  /// Every device that can be used, CPU first.
  std::vector<Device> devices() const;
  bool has(Device device) const;
  /// An unknown device is an error that says why it is not there and lists those that are.
  const DeviceProfile& profile(Device device) const;
  DeviceDriver& driver(Device device) const;
  /// Why a type has no device here; empty if it has.
  std::string why_absent(DeviceType type) const;

  /// A stream that a caller made, with its identity.
  Stream stream(Device device, void* handle) const;
  WorkspacePool& workspace(Device device) const;

  /// New memory on a device, owned by the tensor (and freed before the driver goes).
  Tensor allocate(DataType dtype, const Dims& shape, Device device) const;
  /// The same in a layout of the caller's; a spec whose strides do not fit its shape is an error.
  Tensor allocate(const TensorSpec& asked, Device device) const;
  /// A contiguous copy on another device; waits until it is there.
  Tensor copy_to(const Tensor& tensor, Device device) const;
  /// The same into memory that is there, of the same dtype, shape and strides, in the order of the streams that are
  /// current: on the host it is there when this returns, of what is on a device the next call there reads it.
  void copy_into(const Tensor& from, const Tensor& to) const;
  /// For calls on the device's current stream: what is on the host, up to 16 bytes without waiting, in memory that goes
  /// back in the order of that stream, and must not outlive this. On the CPU it is the tensor itself.
  Tensor value_on(const Tensor& host, Device device) const;

 private:
  struct Slot;
  const Slot* find_slot(DeviceType type) const;
  const Slot& slot(Device device, const char* function) const;

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

/// The profile of the processor this runs on: features and caches as the system reports them.
DeviceProfile probe_cpu();

}  // namespace xpuruntime
