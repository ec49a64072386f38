#pragma once

#include "xpuruntime/core/device.h"
#include "xpuruntime/device/stream.h"

namespace xpuruntime {

/// The calling thread's current device: what the vendor's own functions work on, and where commands place problem texts
/// that name none. A call runs on its tensors' device, never on this one.
Device current_device();

/// Makes `device` current for this thread, also in the vendor's runtime. An error leaves the old one in place.
void set_current_device(Device device);

/// The stream that this thread's calls on `device` are queued on; null is the device's default.
Stream current_stream(Device device);
void set_current_stream(Device device, Stream stream);

/// Makes a device current for a block and brings the old one back, also on exceptions.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device previous_;
};

/// Makes a stream current on a device for a block.
class StreamGuard {
 public:
  StreamGuard(Device device, Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Device device_;
  Stream previous_;
};

/// How a device type is made current in its vendor's runtime (cudaSetDevice); may throw. A null function is the
/// default: nothing beyond the thread's own note. Backends set it when they are opened.
using ActivateDevice = void (*)(int index);
void set_activation(DeviceType type, ActivateDevice activate);

}  // namespace xpuruntime
